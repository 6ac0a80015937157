use super::*;
use crate::engine::ddl::in_memory::InMemorySchema;
use crate::request::Users;
use crate::schema::roles::{Role, Roles, ServiceLevel};

const SECOND_NS: u64 = 1_000_000_000;

/// Returns a schema in which the roles `ann` and `bob` have a level with that rate.
fn limited(generation: u64, rate: Option<u32>) -> Schema {
    let role = |name: &str| Role {
        name: name.to_owned(),
        service_level: Some("gold".to_owned()),
        ..Role::default()
    };
    let mut access = Roles::default().with_role(role("ann")).with_role(role("bob"));
    let gold = ServiceLevel {
        name: "gold".to_owned(),
        max_requests_per_second: rate,
        timeout: Some(Duration::from_millis(20)),
    };
    access.service_levels.insert(gold.name.clone(), gold);
    let mut schema = InMemorySchema::new("k").schema;
    schema.generation = generation;
    schema.access = Arc::new(access);
    schema
}

#[test]
fn each_role_has_its_own_requests() {
    let (services, users) = (RoleServices::default(), Users::default());
    let schema = limited(1, Some(5));
    for name in ["ann", "bob"] {
        let user = users.get(name);
        let counted = |now_ns| services.count_at(&schema, &user, now_ns);
        for _ in 0..5 {
            assert_eq!(counted(SECOND_NS), Ok(Some(Duration::from_millis(20))));
        }
        assert_eq!(
            counted(SECOND_NS),
            Err(CqlError::Overloaded(format!(
                "Role {name} has exceeded 5 requests per second at this node, the limit of its service level gold"
            )))
        );
        assert!(counted(SECOND_NS * 2).is_ok());
    }
}

#[test]
fn schema_change_limits_at_once_and_refills_nothing() {
    let (services, users) = (RoleServices::default(), Users::default());
    let ann = users.get("ann");
    let refused = |schema: &Schema| services.count_at(schema, &ann, SECOND_NS).is_err();
    assert!(!refused(&limited(1, Some(1))));
    assert!(refused(&limited(1, Some(1))));
    assert!(refused(&limited(2, Some(1))));
    assert!(!refused(&limited(3, None)));
}

#[test]
fn roles_without_a_level_are_not_limited() {
    let (services, users) = (RoleServices::default(), Users::default());
    let schema = limited(1, Some(1));
    let eve = users.get("eve");
    assert!((0..10).all(|_| services.count_at(&schema, &eve, SECOND_NS) == Ok(None)));
}
