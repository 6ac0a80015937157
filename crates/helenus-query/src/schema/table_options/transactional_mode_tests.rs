use helenus_cql::ast::PropertyValue;

use super::*;

fn text(name: &str, value: &str) -> (String, PropertyValue) {
    (name.to_owned(), PropertyValue::Text(value.to_owned()))
}

fn map(name: &str, entries: &[(&str, &str)]) -> (String, PropertyValue) {
    let entries = entries
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    (name.to_owned(), PropertyValue::Map(entries.collect()))
}

fn declared(properties: Vec<(String, PropertyValue)>) -> Result<TransactionalMode, CqlError> {
    let mut mode = TransactionalMode::Off;
    read(&Properties(properties), &mut mode)?;
    Ok(mode)
}

#[test]
fn every_mode_is_read_by_its_name() {
    for mode in TransactionalMode::ALL {
        assert_eq!(declared(vec![text(NAME, mode.name())]).unwrap(), mode);
    }
    assert_eq!(
        declared(vec![text(NAME, "FULL")]).unwrap(),
        TransactionalMode::Full
    );
    let refused = declared(vec![text(NAME, "unsafe")]).unwrap_err().to_string();
    assert!(
        refused.contains("'unsafe'") && refused.contains("'mixed_reads'"),
        "{refused}"
    );
}

#[test]
fn transactions_of_ycql_are_the_full_mode() {
    let enabled = |value| declared(vec![map(YCQL_NAME, &[("enabled", value)])]);
    assert_eq!(enabled("true").unwrap(), TransactionalMode::Full);
    assert_eq!(enabled("false").unwrap(), TransactionalMode::Off);
    assert!(enabled("maybe").is_err());
    assert!(declared(vec![map(YCQL_NAME, &[("consistency_level", "user_enforced")])]).is_err());
    let both = vec![text(NAME, "full"), map(YCQL_NAME, &[("enabled", "true")])];
    assert!(declared(both).is_err());
}
