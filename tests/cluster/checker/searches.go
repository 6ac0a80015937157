package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"reflect"
)

// Values that a searched row takes, one after the other and again.
const searchValues = 3

// Search is a way to find a row by its value.
type Search struct {
	// The statements after the table's that make it.
	schema []string
	// value gives the value that stands for a number in the row of a key. No two rows have the same.
	value func(key string, number int64) any
	// Finds rows by a value that is given so often.
	statement string
	markers   int
	// Other rows are found besides.
	others bool
	// It may be behind its table while a write is under way, so it is searched when all is written.
	late bool
}

// searches are those of each kind of register that is searched.
var searches = map[string]Search{
	indexed: {
		schema:    []string{"CREATE INDEX IF NOT EXISTS ON %s.indexed (v)"},
		value:     func(key string, number int64) any { return fmt.Sprintf("%s/%d", key, number) },
		statement: "SELECT k, v FROM indexed WHERE v = ?", markers: 1,
	},
	ranged: {
		schema:    []string{"CREATE INDEX IF NOT EXISTS ON %s.ranged (v) USING 'sai'"},
		value:     func(key string, number int64) any { return int64(hashOf(key, number) >> 1) },
		statement: "SELECT k, v FROM ranged WHERE v >= ? AND v <= ?", markers: 2,
	},
	nearest: {
		schema: []string{"CREATE INDEX IF NOT EXISTS ON %s.nearest (v) USING 'sai' WITH OPTIONS = {'similarity_function': 'euclidean'}"},
		value:  vectorOf,
		// The row with that very vector is the nearest.
		statement: "SELECT k, v FROM nearest ORDER BY v ANN OF ? LIMIT 2", markers: 1, others: true,
	},
	viewed: {
		schema: []string{"CREATE MATERIALIZED VIEW IF NOT EXISTS %[1]s.viewed_by_value AS SELECT k, v FROM %[1]s.viewed " +
			"WHERE v IS NOT NULL AND k IS NOT NULL PRIMARY KEY (v, k)"},
		value:     func(key string, number int64) any { return fmt.Sprintf("%s/%d", key, number) },
		statement: "SELECT k, v FROM viewed_by_value WHERE v = ?", markers: 1, late: true,
	},
}

func hashOf(key string, number int64) uint64 {
	hash := fnv.New64a()
	fmt.Fprintf(hash, "%s/%d", key, number)
	return hash.Sum64()
}

// vectorOf gives four components between 0 and 1.
func vectorOf(key string, number int64) any {
	hash := hashOf(key, number)
	vector := make([]float32, 4)
	for at := range vector {
		vector[at] = float32(uint16(hash>>(16*at))) / math.MaxUint16
	}
	return vector
}

// read finds the number of the value that a row holds; zero if there is no row.
func (s Search) read(ctx context.Context, op *Op, query prepare) error {
	found := map[string]any{}
	err := query("SELECT v FROM "+tableOf[op.Kind]+" WHERE k = ?", op.Key).MapScanContext(ctx, found)
	if none(err) != nil || err != nil {
		return none(err)
	}
	for number := range int64(searchValues) {
		if reflect.DeepEqual(found["v"], s.value(op.Key, number+1)) {
			op.Found = number + 1
		}
	}
	if op.Found == 0 {
		op.Wrong = fmt.Sprintf("the row holds %v", found["v"])
	}
	return nil
}

// find says whether the search gives the row that has the value.
func (s Search) find(ctx context.Context, op *Op, query prepare) error {
	wanted := s.value(op.Key, op.Value)
	var values []any
	for range s.markers {
		values = append(values, wanted)
	}
	op.Found, op.Wrong = 0, ""
	rows := query(s.statement, values...).IterContext(ctx)
	keys := map[any]bool{}
	for row := map[string]any{}; rows.MapScan(row); row = map[string]any{} {
		key, value := row["k"], row["v"]
		is := key == op.Key && reflect.DeepEqual(value, wanted)
		if keys[key] || !is && !s.others {
			op.Wrong = fmt.Sprintf("a search for %v gave row %s with %v", wanted, key, value)
		}
		keys[key] = true
		if is {
			op.Found = op.Value
		}
	}
	return rows.Close()
}
