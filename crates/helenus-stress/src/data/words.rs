//! Words for the generators.

#[rustfmt::skip]
/// Frequent words of English prose.
pub const WORDS: [&str; 166] = [
    "the", "of", "and", "to", "in", "that", "was", "his", "he", "it", "with", "is", "for", "as", "had", "you", "not", "be", "her", "on",
    "at", "by", "which", "have", "or", "from", "this", "him", "but", "all", "she", "they", "were", "my", "are", "me", "one", "their",
    "so", "an", "said", "them", "we", "who", "would", "been", "will", "no", "when", "there", "if", "more", "out", "up", "into", "do",
    "any", "your", "what", "has", "man", "could", "other", "than", "our", "some", "very", "time", "upon", "about", "may", "its", "only",
    "now", "like", "little", "then", "can", "made", "should", "did", "us", "such", "great", "before", "must", "two", "these", "see",
    "know", "over", "much", "down", "after", "first", "mr", "good", "men", "own", "never", "most", "old", "shall", "day", "where",
    "those", "came", "come", "himself", "way", "work", "life", "without", "go", "make", "well", "through", "being", "long", "say",
    "might", "how", "am", "too", "many", "still", "each", "part", "hand", "again", "here", "place", "house", "under", "found", "last",
    "night", "while", "heard", "thought", "head", "away", "against", "water", "small", "sea", "young", "light", "door", "king", "mother",
    "father", "heart", "eyes", "morning", "world", "began", "round", "moment", "knew", "word", "looked", "stood", "white", "black",
    "voice",
];

#[rustfmt::skip]
/// Frequent first names.
pub const FIRST_NAMES: [&str; 20] = [
    "James", "Mary", "Robert", "Patricia", "John", "Jennifer", "Michael", "Linda", "David", "Elizabeth", "William", "Barbara", "Richard",
    "Susan", "Joseph", "Jessica", "Thomas", "Sarah", "Charles", "Karen",
];

#[rustfmt::skip]
/// Frequent last names.
pub const LAST_NAMES: [&str; 20] = [
    "Smith", "Johnson", "Williams", "Brown", "Jones", "Garcia", "Miller", "Davis", "Rodriguez", "Martinez", "Hernandez", "Lopez",
    "Gonzalez", "Wilson", "Anderson", "Thomas", "Taylor", "Moore", "Jackson", "Martin",
];

#[rustfmt::skip]
/// Large cities of the United States.
pub const CITIES: [&str; 20] = [
    "New York", "Los Angeles", "Chicago", "Houston", "Phoenix", "Philadelphia", "San Antonio", "San Diego", "Dallas", "San Jose",
    "Austin", "Jacksonville", "Fort Worth", "Columbus", "Charlotte", "Indianapolis", "San Francisco", "Seattle", "Denver", "Boston",
];
