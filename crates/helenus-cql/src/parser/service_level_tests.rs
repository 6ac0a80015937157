use crate::ast::{
    AlterServiceLevel, CreateServiceLevel, DropServiceLevel, ListServiceLevels, ServiceLevelOption,
    ServiceLevelStatement, Statement,
};
use crate::error::CqlError;
use crate::parser::parse_statement;

fn parse(text: &str) -> ServiceLevelStatement {
    match parse_statement(text).map(|parsed| parsed.statement) {
        Ok(Statement::ServiceLevel(statement)) => statement,
        other => panic!("{text}: {other:?}"),
    }
}

fn list(text: &str) -> ListServiceLevels {
    match parse(text) {
        ServiceLevelStatement::List(list) => list,
        other => panic!("{text}: {other:?}"),
    }
}

fn option(name: &str, value: Option<&str>) -> ServiceLevelOption {
    ServiceLevelOption {
        name: name.to_owned(),
        value: value.map(str::to_owned),
    }
}

fn syntax_error(text: &str) -> String {
    match parse_statement(text) {
        Err(CqlError::Syntax(message)) => message,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn levels_are_created_with_any_of_their_options() {
    let gold = |if_not_exists, options| {
        ServiceLevelStatement::Create(CreateServiceLevel {
            name: "gold".to_owned(),
            if_not_exists,
            options,
        })
    };
    assert_eq!(parse("CREATE SERVICE LEVEL gold"), gold(false, Vec::new()));
    assert_eq!(
        parse("create service_level if not exists Gold;"),
        gold(true, Vec::new())
    );
    assert_eq!(
        parse("CREATE SERVICE LEVEL gold WITH max_requests_per_second = 1000 AND timeout = 500ms"),
        gold(
            false,
            vec![
                option("max_requests_per_second", Some("1000")),
                option("timeout", Some("500ms")),
            ]
        )
    );
    // The parser does not check which options exist.
    assert_eq!(
        parse("CREATE SERVICE LEVEL gold WITH shares = 100 AND workload_type = interactive"),
        gold(
            false,
            vec![
                option("shares", Some("100")),
                option("workload_type", Some("interactive"))
            ]
        )
    );
}

#[test]
fn levels_are_altered_and_dropped() {
    assert_eq!(
        parse("ALTER SERVICE LEVEL \"Gold\" WITH timeout = null"),
        ServiceLevelStatement::Alter(AlterServiceLevel {
            name: "Gold".to_owned(),
            options: vec![option("timeout", None)],
        })
    );
    let drop = |if_exists| {
        ServiceLevelStatement::Drop(DropServiceLevel {
            name: "gold".to_owned(),
            if_exists,
        })
    };
    assert_eq!(parse("DROP SERVICE LEVEL IF EXISTS gold"), drop(true));
    assert_eq!(parse("DROP SERVICE_LEVEL gold"), drop(false));
}

#[test]
fn levels_are_attached_and_detached() {
    assert_eq!(
        parse("ATTACH SERVICE LEVEL gold TO 'App'"),
        ServiceLevelStatement::Attach {
            level: "gold".to_owned(),
            role: "App".to_owned(),
        }
    );
    assert_eq!(
        parse("DETACH SERVICE_LEVEL FROM app"),
        ServiceLevelStatement::Detach {
            role: "app".to_owned()
        }
    );
}

#[test]
fn levels_are_listed() {
    assert_eq!(
        list("LIST SERVICE LEVEL gold"),
        ListServiceLevels::One("gold".to_owned())
    );
    for text in ["LIST ALL SERVICE LEVELS", "LIST ALL SERVICE_LEVELS"] {
        assert_eq!(list(text), ListServiceLevels::All);
    }
    assert_eq!(
        list("LIST ATTACHED SERVICE LEVEL OF app"),
        ListServiceLevels::AttachedTo("app".to_owned())
    );
    assert_eq!(
        list("LIST ALL ATTACHED SERVICE LEVELS"),
        ListServiceLevels::AllAttached
    );
    assert_eq!(
        list("LIST EFFECTIVE SERVICE LEVEL OF app"),
        ListServiceLevels::EffectiveOf("app".to_owned())
    );
}

#[test]
fn the_words_stay_names() {
    for text in [
        "SELECT service, level, levels, attached, effective FROM attach.detach",
        "CREATE ROLE service",
        "LIST ROLES OF service",
        "LIST ALL PERMISSIONS ON service.level OF attached",
    ] {
        let parsed = parse_statement(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert!(!matches!(parsed.statement, Statement::ServiceLevel(_)), "{text}");
    }
}

#[test]
fn what_is_cut_short_is_no_statement() {
    for text in [
        "CREATE SERVICE LEVEL",
        "CREATE SERVICE gold",
        "CREATE SERVICE LEVEL gold WITH",
        "CREATE SERVICE LEVEL gold WITH timeout",
        "ALTER SERVICE LEVEL gold",
        "ATTACH SERVICE LEVEL gold",
        "ATTACH gold TO app",
        "DETACH SERVICE LEVEL gold FROM app",
        "LIST ALL SERVICE LEVEL",
        "LIST EFFECTIVE SERVICE LEVEL app",
        "LIST \"SERVICE\" LEVEL gold",
    ] {
        assert!(!syntax_error(text).is_empty());
    }
    assert_eq!(
        syntax_error("CREATE SERVICE LEVEL gold WITH timeout = 1s AND timeout = 2s"),
        "Multiple definition for property 'timeout'"
    );
}
