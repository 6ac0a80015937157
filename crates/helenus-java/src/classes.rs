//! The classes that functions may name.

/// The full names of the classes. Classes of `java.lang`, `java.util` and [`IMPORTED`] may also be called by the last part of their name
/// alone.
const NAMES: &[&str] = &[
    "java.io.IOException",
    "java.io.Serializable",
    "java.lang.ArithmeticException",
    "java.lang.ArrayIndexOutOfBoundsException",
    "java.lang.AssertionError",
    "java.lang.Boolean",
    "java.lang.Byte",
    "java.lang.CharSequence",
    "java.lang.Character",
    "java.lang.Class",
    "java.lang.ClassCastException",
    "java.lang.CloneNotSupportedException",
    "java.lang.Comparable",
    "java.lang.Double",
    "java.lang.Error",
    "java.lang.Exception",
    "java.lang.Float",
    "java.lang.IllegalArgumentException",
    "java.lang.IllegalStateException",
    "java.lang.IndexOutOfBoundsException",
    "java.lang.Integer",
    "java.lang.InterruptedException",
    "java.lang.Iterable",
    "java.lang.Long",
    "java.lang.Math",
    "java.lang.NegativeArraySizeException",
    "java.lang.NullPointerException",
    "java.lang.Number",
    "java.lang.NumberFormatException",
    "java.lang.Object",
    "java.lang.OutOfMemoryError",
    "java.lang.RuntimeException",
    "java.lang.SecurityException",
    "java.lang.Short",
    "java.lang.StackOverflowError",
    "java.lang.String",
    "java.lang.StringBuffer",
    "java.lang.StringBuilder",
    "java.lang.StringIndexOutOfBoundsException",
    "java.lang.System",
    "java.lang.Throwable",
    "java.lang.UnsupportedOperationException",
    "java.math.BigDecimal",
    "java.math.BigInteger",
    "java.math.RoundingMode",
    "java.net.Inet4Address",
    "java.net.Inet6Address",
    "java.net.InetAddress",
    "java.net.NetworkInterface",
    "java.net.UnknownHostException",
    "java.nio.ByteBuffer",
    "java.text.DateFormat",
    "java.text.ParseException",
    "java.text.SimpleDateFormat",
    "java.time.DateTimeException",
    "java.time.DayOfWeek",
    "java.time.Duration",
    "java.time.Instant",
    "java.time.LocalDate",
    "java.time.LocalDateTime",
    "java.time.LocalTime",
    "java.time.Month",
    "java.time.Period",
    "java.time.ZoneId",
    "java.time.ZoneOffset",
    "java.time.ZonedDateTime",
    "java.time.format.DateTimeFormatter",
    "java.time.format.DateTimeParseException",
    "java.time.temporal.ChronoUnit",
    "java.time.temporal.Temporal",
    "java.time.temporal.TemporalAccessor",
    "java.time.temporal.TemporalAmount",
    "java.time.temporal.TemporalUnit",
    "java.time.temporal.UnsupportedTemporalTypeException",
    "java.time.zone.ZoneRulesException",
    "java.util.ArrayList",
    "java.util.Arrays",
    "java.util.Calendar",
    "java.util.Collection",
    "java.util.Collections",
    "java.util.Date",
    "java.util.GregorianCalendar",
    "java.util.HashMap",
    "java.util.HashSet",
    "java.util.Iterator",
    "java.util.LinkedHashMap",
    "java.util.LinkedHashSet",
    "java.util.LinkedList",
    "java.util.List",
    "java.util.Locale",
    "java.util.Map",
    "java.util.Map.Entry",
    "java.util.NoSuchElementException",
    "java.util.Objects",
    "java.util.Set",
    "java.util.SortedMap",
    "java.util.SortedSet",
    "java.util.TimeZone",
    "java.util.TreeMap",
    "java.util.TreeSet",
    "java.util.UUID",
    "java.util.concurrent.TimeUnit",
    "org.apache.cassandra.cql3.functions.UDFContext",
    "org.apache.cassandra.cql3.functions.types.Duration",
    "org.apache.cassandra.cql3.functions.types.LocalDate",
    "org.apache.cassandra.cql3.functions.types.TupleValue",
    "org.apache.cassandra.cql3.functions.types.UDTValue",
];

/// The classes, besides those of `java.util`, that Cassandra's generated source around a body imports.
const IMPORTED: &[&str] = &["ByteBuffer", "TupleValue", "UDFContext", "UDTValue"];

/// Returns the short name of a class, which is the last part of its full name. Two classes of `java.time` keep the prefix `time.`, because
/// classes of Cassandra have the same last part.
fn last(name: &str) -> &str {
    match name {
        "java.time.Duration" => "time.Duration",
        "java.time.LocalDate" => "time.LocalDate",
        _ => name.rsplit('.').next().unwrap_or(name),
    }
}

/// Returns the short name of the class that is written so. `None` if there is no such class, or if its full name is needed.
pub(crate) fn resolve(written: &str) -> Option<&'static str> {
    let package = |name: &str| name.rsplit_once('.').map(|(package, _)| package.to_owned());
    let is_meant = |name: &&&str| {
        if written.contains('.') {
            return **name == written || name.strip_prefix("java.util.") == Some(written);
        }
        let is_open = package(name).is_some_and(|package| package == "java.lang" || package == "java.util");
        last(name) == written && (is_open || IMPORTED.contains(&written))
    };
    NAMES.iter().find(is_meant).map(|name| last(name))
}

/// Returns the full name of a class with this short name. An unknown name is returned unchanged.
pub(crate) fn whole_name(class: &str) -> &str {
    let found = NAMES.iter().find(|name| last(name) == class);
    found.copied().unwrap_or(class)
}

/// Returns true if the text is the full name of a class in Java's own packages that functions in Cassandra may use.
pub(crate) fn is_of_java(written: &str) -> bool {
    let packages = [
        "java.lang.",
        "java.math.",
        "java.nio.",
        "java.text.",
        "java.time.",
        "java.util.",
    ];
    let rest = packages.iter().find_map(|package| written.strip_prefix(package));
    let class = rest.and_then(|rest| rest.rsplit('.').next());
    class.is_some_and(|class| class.starts_with(|first: char| first.is_ascii_uppercase()))
}

/// Returns the message for an unknown class.
pub(crate) fn unknown(written: &str) -> String {
    match is_of_java(written) {
        true => format!("{written} is not supported in functions"),
        false => format!("{written} cannot be resolved to a type"),
    }
}

/// Returns true if functions must not call a static method, although they may name its class.
pub(crate) fn is_forbidden(class: &str, method: &str) -> bool {
    match class {
        "Class" => method == "forName",
        "ByteBuffer" => method == "allocateDirect",
        "InetAddress" | "Inet4Address" | "Inet6Address" => matches!(
            method,
            "getAllByName" | "getByAddress" | "getByName" | "getLocalHost" | "getLoopbackAddress"
        ),
        "NetworkInterface" => true,
        _ => false,
    }
}

/// Returns true if objects of the class are `Throwable`.
pub(crate) fn is_throwable(class: &str) -> bool {
    whole_name(class) != class
        && ["Exception", "Error", "Throwable"]
            .iter()
            .any(|end| class.ends_with(end))
}

/// Returns true if an exception of class `own` is also one of class `wanted`.
pub(crate) fn is_exception(own: &str, wanted: &str) -> bool {
    let is_error = own.ends_with("Error");
    match wanted {
        _ if own == wanted => true,
        "Throwable" => true,
        "Error" => is_error,
        "Exception" => !is_error && own != "Throwable",
        "RuntimeException" => !is_error && !is_checked(own),
        "IOException" => own == "UnknownHostException",
        "DateTimeException" => matches!(
            own,
            "DateTimeParseException" | "UnsupportedTemporalTypeException" | "ZoneRulesException"
        ),
        "IllegalArgumentException" => own == "NumberFormatException",
        "IndexOutOfBoundsException" => own.ends_with("IndexOutOfBoundsException"),
        _ => false,
    }
}

/// Returns true for checked exceptions. A method must declare those that it throws, which functions can't do.
pub(crate) fn is_checked(class: &str) -> bool {
    matches!(
        class,
        "CloneNotSupportedException"
            | "Exception"
            | "InterruptedException"
            | "IOException"
            | "ParseException"
            | "Throwable"
            | "UnknownHostException"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_written_whole_or_imported() {
        assert_eq!(resolve("String"), Some("String"));
        assert_eq!(resolve("java.util.Map.Entry"), Some("Entry"));
        assert_eq!(resolve("Map.Entry"), Some("Entry"));
        assert_eq!(resolve("Entry"), None);
        assert_eq!(resolve("BigDecimal"), None);
        assert_eq!(resolve("java.math.BigDecimal"), Some("BigDecimal"));
        assert_eq!(resolve("UDTValue"), Some("UDTValue"));
        assert_eq!(resolve("java.lang.Runtime"), None);
        assert_eq!(whole_name("BigDecimal"), "java.math.BigDecimal");
    }
}
