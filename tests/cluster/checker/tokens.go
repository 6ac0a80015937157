package main

import "github.com/twmb/murmur3"

// The ring is looked at in as many parts of one width. A cluster of up to 16 tablets has none that is smaller.
const buckets = 16

// token is where the partition of an ASCII text lies. (Cassandra's Murmur3 differs from others for bytes above 127 only.)
func token(key string) int64 {
	first, _ := murmur3.StringSum128(key)
	if t := int64(first); t != -1<<63 {
		return t
	}
	return 1<<63 - 1
}

// bucket is the part of the ring that a key lies in.
func bucket(key string) int { return bucketOf(token(key)) }

func bucketOf(token int64) int { return int((uint64(token) ^ 1<<63) >> 60) }
