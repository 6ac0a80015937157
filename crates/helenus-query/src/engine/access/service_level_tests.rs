use std::sync::Arc;

use helenus_cql::ast::Statement;
use helenus_cql::parser::parse_statement;

use super::*;
use crate::engine::AccessControl;
use crate::engine::ddl::in_memory::InMemorySchema;
use crate::schema::Schema;

/// Returns a schema with the superuser `root`, and with `app`, a member of `team`.
fn with_roles() -> Schema {
    let role = |name: &str, is_superuser: bool, member_of: &[&str]| Role {
        name: name.to_owned(),
        is_superuser,
        member_of: member_of.iter().map(|name| (*name).to_owned()).collect(),
        ..Role::default()
    };
    let mut schema = InMemorySchema::new("k").schema;
    let roles = [
        role("root", true, &[]),
        role("app", false, &["team"]),
        role("team", false, &[]),
    ];
    let mut access = Roles::default();
    for role in roles {
        access = access.with_role(role);
    }
    schema.access = Arc::new(access);
    schema
}

fn statement(text: &str) -> ServiceLevelStatement {
    match parse_statement(text).map(|parsed| parsed.statement) {
        Ok(Statement::ServiceLevel(statement)) => statement,
        other => panic!("{text}: {other:?}"),
    }
}

fn context<'a>(schema: &'a Schema, user: &'a str) -> RoleContext<'a> {
    RoleContext {
        control: AccessControl {
            authenticates: true,
            authorizes: true,
        },
        schema,
        data_centers: &[],
        user: Some(user),
        keyspace: None,
    }
}

/// Runs statements one after the other.
fn run(schema: &mut Schema, texts: &[&str]) -> Result<(), CqlError> {
    for text in texts {
        let changed = apply(&context(schema, "root"), &statement(text))?;
        if let Some(access) = changed {
            schema.access = Arc::new(access);
        }
    }
    Ok(())
}

fn refusal(schema: &Schema, text: &str) -> String {
    match apply(&context(schema, "root"), &statement(text)) {
        Err(CqlError::Invalid(message)) => message,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn levels_are_made_altered_attached_and_dropped() {
    let mut schema = with_roles();
    run(
        &mut schema,
        &[
            "CREATE SERVICE LEVEL gold WITH max_requests_per_second = 1000 AND timeout = 1s500ms",
            "CREATE SERVICE LEVEL IF NOT EXISTS gold",
            "ATTACH SERVICE LEVEL gold TO team",
        ],
    )
    .unwrap();
    let gold = &schema.access.service_levels["gold"];
    assert_eq!(gold.max_requests_per_second, Some(1000));
    assert_eq!(gold.timeout, Some(Duration::from_millis(1500)));
    let rate = schema.access.effective_level("app").max_requests_per_second;
    assert_eq!(rate.map(|rate| rate.limit), Some(1000));

    run(&mut schema, &["ALTER SERVICE LEVEL gold WITH timeout = null"]).unwrap();
    let gold = &schema.access.service_levels["gold"];
    assert_eq!((gold.max_requests_per_second, gold.timeout), (Some(1000), None));

    run(
        &mut schema,
        &["DROP SERVICE LEVEL gold", "DROP SERVICE LEVEL IF EXISTS gold"],
    )
    .unwrap();
    assert!(schema.access.service_levels.is_empty());
    assert_eq!(schema.access.role("team").unwrap().service_level, None);

    let again = [
        "CREATE SERVICE LEVEL gold",
        "ATTACH SERVICE LEVEL gold TO app",
        "DETACH SERVICE LEVEL FROM app",
    ];
    run(&mut schema, &again).unwrap();
    assert_eq!(schema.access.role("app").unwrap().service_level, None);
}

#[test]
fn what_is_not_there_or_makes_no_sense_is_refused() {
    let mut schema = with_roles();
    run(&mut schema, &["CREATE SERVICE LEVEL gold"]).unwrap();
    let refused = [
        ("CREATE SERVICE LEVEL gold", "Service level gold already exists"),
        (
            "CREATE SERVICE LEVEL ''",
            "The name of a service level can't be empty",
        ),
        (
            "ALTER SERVICE LEVEL tin WITH timeout = 1s",
            "Service level tin doesn't exist",
        ),
        ("DROP SERVICE LEVEL tin", "Service level tin doesn't exist"),
        (
            "ATTACH SERVICE LEVEL tin TO app",
            "Service level tin doesn't exist",
        ),
        ("ATTACH SERVICE LEVEL gold TO nobody", "Role nobody doesn't exist"),
        ("DETACH SERVICE LEVEL FROM nobody", "Role nobody doesn't exist"),
        ("LIST SERVICE LEVEL tin", "Service level tin doesn't exist"),
        (
            "LIST EFFECTIVE SERVICE LEVEL OF nobody",
            "Role nobody doesn't exist",
        ),
    ];
    for (text, message) in refused {
        assert_eq!(refusal(&schema, text), message);
    }
}

#[test]
fn unknown_options_are_refused_with_those_there_are() {
    let schema = with_roles();
    for option in [
        "shares = 100",
        "workload_type = 'batch'",
        "workload_type = interactive",
    ] {
        let reported = refusal(&schema, &format!("CREATE SERVICE LEVEL gold WITH {option}"));
        assert!(
            reported.ends_with("of a service level: the options are max_requests_per_second and timeout"),
            "{reported}"
        );
    }
    for rate in ["0", "-1", "1.5", "'many'", "4294967296"] {
        let reported = refusal(
            &schema,
            &format!("CREATE SERVICE LEVEL gold WITH max_requests_per_second = {rate}"),
        );
        assert!(
            reported.contains("it must be a whole number from 1 to 4294967295"),
            "{reported}"
        );
    }
    for timeout in ["0ms", "-1s", "500us", "1d", "1mo", "25h", "5", "soon"] {
        let reported = refusal(
            &schema,
            &format!("CREATE SERVICE LEVEL gold WITH timeout = {timeout}"),
        );
        assert!(
            reported.contains("a duration of whole milliseconds from 1ms to 24h"),
            "{reported}"
        );
    }
}

#[test]
fn only_superusers_change_levels_and_roles_see_their_own() {
    let schema = with_roles();
    let may = |user: &str, text: &str| may_manage(&context(&schema, user), &statement(text)).is_ok();
    for text in [
        "CREATE SERVICE LEVEL gold",
        "ALTER SERVICE LEVEL gold WITH timeout = 1s",
        "DROP SERVICE LEVEL gold",
        "ATTACH SERVICE LEVEL gold TO app",
        "DETACH SERVICE LEVEL FROM app",
        "LIST SERVICE LEVEL gold",
        "LIST ALL SERVICE LEVELS",
        "LIST ALL ATTACHED SERVICE LEVELS",
        "LIST EFFECTIVE SERVICE LEVEL OF root",
    ] {
        assert!(may("root", text) && !may("app", text), "{text}");
    }
    for text in [
        "LIST ATTACHED SERVICE LEVEL OF app",
        "LIST EFFECTIVE SERVICE LEVEL OF app",
        "LIST EFFECTIVE SERVICE LEVEL OF team",
    ] {
        assert!(may("root", text) && may("app", text), "{text}");
    }
    assert!(!may("team", "LIST EFFECTIVE SERVICE LEVEL OF app"));
}
