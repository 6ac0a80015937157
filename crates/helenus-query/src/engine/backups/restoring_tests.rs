use std::collections::BTreeMap;

use super::*;
use crate::engine::backups::BackUp;
use crate::engine::ddl::in_memory::InMemorySchema;
use crate::execution::modification::dml_tests::Session;
use crate::schema::roles::Resource;

const FILL: [&str; 5] = [
    "CREATE TABLE ks.t (k int, c int, v text, PRIMARY KEY (k, c))",
    "INSERT INTO ks.t (k, c, v) VALUES (1, 1, 'one')",
    "INSERT INTO ks.t (k, c, v) VALUES (1, 2, 'two')",
    "DELETE FROM ks.t WHERE k = 1 AND c > 1",
    "CREATE TYPE ks.point (x int, y int)",
];

async fn back_up(session: &Session, to: &str, name: &str) {
    let wanted = BackUp {
        to: to.to_owned(),
        name: Some(name.to_owned()),
        ..BackUp::default()
    };
    session.engine.back_up(&wanted, BTreeMap::new()).await.unwrap();
}

fn from(place: &str) -> RestoreBackup {
    RestoreBackup {
        from: place.to_owned(),
        ..RestoreBackup::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_is_put_back_into_another_store_and_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().to_str().unwrap();
    let session = Session::new().await;
    session.all(&FILL).await;
    back_up(&session, place, "first").await;
    assert!(
        session.engine.schema().snapshots.is_empty(),
        "nothing stays pinned"
    );
    session
        .all(&["UPDATE ks.t SET v = 'later' WHERE k = 1 AND c = 1"])
        .await;
    back_up(&session, place, "second").await;

    // Without a name, the newest backup would be restored.
    let other = Session::new().await;
    let wanted = RestoreBackup {
        name: Some("first".to_owned()),
        ..from(place)
    };
    let restored = other.engine.restore_backup(&wanted).await.unwrap();
    assert_eq!(restored.keyspaces[0].tables, ["t"]);
    assert_eq!(other.run("SELECT k, c, v FROM ks.t").await, "1, 1, 'one'");
    assert_eq!(
        other.run("SELECT type_name FROM system_schema.types").await,
        "'point'"
    );
    other.engine.restore_backup(&from(place)).await.unwrap();
    assert_eq!(other.run("SELECT v FROM ks.t").await, "'later'");

    let restored = session.engine.restore_backup(&wanted).await.unwrap();
    assert!(restored.keyspaces[0].replaced.is_some());
    assert_eq!(session.run("SELECT k, c, v FROM ks.t").await, "1, 1, 'one'");
    let refused = |wanted: RestoreBackup| {
        let engine = session.engine.clone();
        async move { engine.restore_backup(&wanted).await.unwrap_err().to_string() }
    };
    let none = RestoreBackup {
        keyspace: Some("none".to_owned()),
        ..from(place)
    };
    assert_eq!(
        refused(none).await,
        "backup second has no keyspace none; it has ks"
    );
    let none = RestoreBackup {
        name: Some("third".to_owned()),
        ..from(place)
    };
    assert!(refused(none).await.contains("there is no backup third"));
}

#[test]
fn roles_take_the_place_of_those_of_their_names() {
    let role = |name: &str, can_login| {
        let role = Role {
            name: name.to_owned(),
            can_login,
            ..Role::default()
        };
        (name.to_owned(), Arc::new(role))
    };
    let today = Roles {
        roles: BTreeMap::from([role("ann", false), role("bob", false)]),
        ..Roles::default()
    };
    let ann = Roles {
        roles: BTreeMap::from([role("ann", true)]),
        ..Roles::default()
    };
    let none = br#"{"format":1,"next_table_number":1,"keyspaces":[]}"#;
    let mut schema = crate::engine::ddl::schema_store::read_whole(none).unwrap();
    let mut earlier = schema.clone();
    earlier.access = Arc::new(ann);
    schema.access = Arc::new(today);
    let after = with_roles(&schema, &earlier).unwrap();
    let can_login: Vec<bool> = after.access.roles.values().map(|role| role.can_login).collect();
    assert_eq!(can_login, [true, false]);
    assert!(
        with_roles(&after, &earlier).is_none(),
        "nothing is written for nothing"
    );
}

#[test]
fn restored_roles_keep_permissions_on_the_same_things() {
    let mut earlier = InMemorySchema::new("ks");
    for statement in [
        "CREATE TABLE t (k int PRIMARY KEY)",
        "CREATE TABLE u (k int PRIMARY KEY)",
    ] {
        earlier.apply(statement).unwrap();
    }
    let mut today = InMemorySchema {
        schema: earlier.schema.clone(),
        ..earlier
    };
    let mut earlier = earlier.schema;
    for statement in [
        "DROP TABLE u",
        "CREATE TABLE u (k int PRIMARY KEY)",
        "CREATE KEYSPACE other WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    ] {
        today.apply(statement).unwrap();
    }
    let keyspace = |name: &str| Resource::Keyspace(name.to_owned());
    let same = [keyspace("ks"), Resource::AllKeyspaces, Resource::table("ks", "t")];
    let another = [
        keyspace("other"),
        Resource::table("ks", "u"),
        Resource::table("ks", "gone"),
    ];
    let mut ann = Role {
        name: "ann".to_owned(),
        ..Role::default()
    };
    for on in same.iter().chain(&another) {
        ann.permissions.insert(on.clone(), on.applicable());
    }
    earlier.access = Arc::new(Roles::default().with_role(ann));
    let after = with_roles(&today.schema, &earlier).unwrap();
    let left: BTreeSet<Resource> = after.access.roles["ann"].permissions.keys().cloned().collect();
    assert_eq!(left, BTreeSet::from(same));
}
