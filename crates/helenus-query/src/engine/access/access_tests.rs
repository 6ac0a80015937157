use helenus_cql::ast::Permission;
use helenus_cql::parser::parse_statement;
use helenus_cql::types::CqlType;

use super::*;
use crate::analysis::plan;
use crate::engine::ddl::in_memory::InMemorySchema;
use crate::request::Users;
use crate::schema::roles::{PermissionSet, Resource};

fn role(name: &str, member_of: &[&str], granted: &[(Resource, Permission)]) -> Role {
    let mut role = Role {
        name: name.to_owned(),
        member_of: member_of.iter().map(|of| (*of).to_owned()).collect(),
        ..Role::default()
    };
    for (on, permission) in granted {
        let before = role.permissions.get(on).copied().unwrap_or_default();
        let granted = before.with(PermissionSet::from_iter([*permission]));
        role.permissions.insert(on.clone(), granted);
    }
    role
}

fn access(roles: impl IntoIterator<Item = Role>) -> Roles {
    roles
        .into_iter()
        .fold(Roles::default(), |access, role| access.with_role(role))
}

fn keyspace(name: &str) -> Resource {
    Resource::Keyspace(name.to_owned())
}

#[test]
fn rows_with_timestamps_need_modify() {
    let mut known = InMemorySchema::new("ks");
    for statement in [
        "CREATE TABLE t (k int PRIMARY KEY, v int)",
        "CREATE TABLE u (k int PRIMARY KEY, v int)",
        "CREATE MATERIALIZED VIEW by_v AS SELECT * FROM u WHERE v IS NOT NULL AND k IS NOT NULL PRIMARY KEY (v, k)",
    ] {
        known.apply(statement).expect(statement);
    }
    let users = Users::default();
    let may = |table: &str, granted: &[(Resource, Permission)]| {
        let mut schema = known.schema.clone();
        schema.access = Arc::new(access([role("ann", &[], granted)]));
        let parsed = parse_statement(&format!("INSERT INTO ks.{table} (v) ROWS ?")).expect("a statement");
        let planned = plan(&schema, None, &parsed).expect("a plan");
        let ctx = RoleContext {
            control: AccessControl {
                authenticates: true,
                authorizes: true,
            },
            schema: &schema,
            data_centers: &[],
            user: Some("ann"),
            keyspace: None,
        };
        authorize(&ctx, Some(&users.get("ann")), &planned).is_ok()
    };
    let on = |table: &str, permission| (Resource::table("ks", table), permission);
    assert!(!may("t", &[on("t", Permission::Select)]));
    assert!(may("t", &[on("t", Permission::Modify)]));
    // The rows of the view are written too.
    assert!(!may("u", &[on("u", Permission::Modify)]));
    assert!(may(
        "u",
        &[(keyspace("ks"), Permission::Modify), on("u", Permission::Select)]
    ));
}

#[test]
fn permissions_come_down_from_what_a_thing_is_a_part_of() {
    let on = Resource::table("k", "t");
    let shown: Vec<String> = on.chain().map(|resource| resource.to_string()).collect();
    assert_eq!(
        shown,
        [
            "<table k.t>",
            "<all tables in k>",
            "<keyspace k>",
            "<all keyspaces>"
        ]
    );
    let access = access([role("ann", &[], &[(keyspace("k"), Permission::Select)])]);
    assert!(access.may("ann", Permission::Select, &on));
    assert!(!access.may("ann", Permission::Modify, &on));
    assert!(!access.may("ann", Permission::Select, &Resource::table("other", "t")));
    assert!(!access.may("ann", Permission::Select, &Resource::AllKeyspaces));
    assert!(!access.may("nobody", Permission::Select, &on));
}

#[test]
fn members_have_what_their_roles_have_however_far_up() {
    let granted = [(keyspace("k"), Permission::Alter)];
    let mut access = access([
        role("ann", &["team", "gone"], &[]),
        role("team", &["house"], &[]),
        // No statement can grant this, but a damaged document must not hang the node.
        role("house", &["team"], &granted),
    ]);
    let names: Vec<&str> = access
        .all_of("ann")
        .iter()
        .map(|role| role.name.as_str())
        .collect();
    assert_eq!(names, ["ann", "team", "house"]);
    assert!(access.may("ann", Permission::Alter, &keyspace("k")));
    assert!(!access.is_superuser("ann"));
    let house = Role {
        is_superuser: true,
        ..role("house", &[], &[])
    };
    access = access.with_role(house);
    assert!(access.is_superuser("ann"));
    assert!(access.may("ann", Permission::Drop, &Resource::AllKeyspaces));
    assert!(!access.may("ann", Permission::Execute, &Resource::AllKeyspaces));
}

#[test]
fn a_function_is_named_as_in_cassandra() {
    let types = [CqlType::INT, CqlType::list(CqlType::TEXT, true)];
    let function = Resource::function("k", "f", &types);
    assert_eq!(function.to_string(), "<function k.f(int, frozen<list<text>>)>");
    assert_eq!(function.parent(), Some(Resource::AllFunctionsIn("k".to_owned())));
    assert!(
        function
            .name()
            .starts_with("functions/k/f[org.apache.cassandra.db.marshal.Int32Type^")
    );
}

#[test]
fn sets_of_permissions() {
    let some: PermissionSet = [Permission::Select, Permission::Create].iter().collect();
    let other: PermissionSet = [Permission::Select, Permission::SelectMasked].iter().collect();
    let all: Vec<Permission> = some.with(other).iter().collect();
    assert_eq!(
        all,
        [Permission::Create, Permission::Select, Permission::SelectMasked]
    );
    assert_eq!(
        some.without(other).iter().collect::<Vec<_>>(),
        [Permission::Create]
    );
    assert!(some.without(some).is_empty());
}

#[test]
fn credentials_are_read_as_cassandra_reads_them() {
    let read = |token: &[u8]| match Credentials::from_token(token) {
        Ok(found) => Ok((found.name, found.password)),
        Err(error) => Err(error.to_string()),
    };
    let ann = Ok(("ann".to_owned(), "secret".to_owned()));
    assert_eq!(read(b"\0ann\0secret"), ann);
    assert_eq!(read(b"whoever\0ann\0secret"), ann);
    let no_password = Err("Password must not be null".to_owned());
    for token in [&b""[..], b"ann", b"\0ann\0", b"\0", b"ann\0"] {
        assert_eq!(read(token), no_password, "{token:?}");
    }
    let long = [&b"\0"[..], &b"x".repeat(1025), b"\0secret"].concat();
    assert_eq!(
        read(&long),
        Err("Username or password is longer than 1024 bytes".to_owned())
    );
    let nobody = Err("Authentication ID must not be null".to_owned());
    assert_eq!(read(b"\0\0secret"), nobody);
    assert_eq!(read(b"ann\0secret"), nobody);
    assert!(read(b"a\0b\0c\0d").is_err_and(|error| error.starts_with("Credential format error")));
}

#[tokio::test]
async fn the_door_opens_for_the_right_password_alone() {
    let known = Role {
        can_login: true,
        salted_hash: Some(password::hash("secret").unwrap()),
        ..role("ann", &[], &[])
    };
    let group = Role {
        can_login: false,
        ..Role {
            name: "group".to_owned(),
            ..known.clone()
        }
    };
    let member = role("member", &["ann"], &[]);
    let costly = Role {
        name: "costly".to_owned(),
        salted_hash: known
            .salted_hash
            .as_ref()
            .map(|hash| hash.replace("$10$", "$31$")),
        ..known.clone()
    };
    let access = access([known, group, member, costly]);
    let authenticator = PasswordAuthenticator::default();
    let knock = async |name: &str, password: &str| {
        let credentials = Credentials {
            name: name.to_owned(),
            password: password.to_owned(),
        };
        let opened = authenticator
            .authenticate(&access, [127, 0, 0, 1].into(), credentials)
            .await;
        opened
            .map(|user| user.name.clone())
            .map_err(|error| error.to_string())
    };
    let wrong = |name: &str| Err(format!("Provided username {name} and/or password are incorrect"));
    for _ in 0..2 {
        assert_eq!(knock("ann", "secret").await, Ok("ann".to_owned()));
        assert_eq!(knock("ann", "Secret").await, wrong("ann"));
        assert_eq!(knock("nobody", "secret").await, wrong("nobody"));
        assert_eq!(knock("member", "secret").await, wrong("member"));
        assert_eq!(knock("costly", "secret").await, wrong("costly"));
    }
    assert_eq!(
        knock("group", "secret").await,
        Err("group is not permitted to log in".to_owned())
    );
}

#[test]
fn hashes_are_bcrypts() {
    let hash = password::hash("secret").unwrap();
    assert!(hash.starts_with("$2a$10$"));
    assert!(password::cost(&hash) == Some(10) && password::is_of("secret", &hash));
    assert!(!password::is_of("other", &hash));
    assert_eq!(password::cost(credentials::DUMMY_HASH), Some(10));
    for other in ["", "secret", "$2a$10$short", &"x".repeat(60)] {
        assert!(password::cost(other).is_none() && !password::is_of("secret", other));
    }
}
