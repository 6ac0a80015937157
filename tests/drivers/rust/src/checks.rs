//! The checks of one compression.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use futures::{StreamExt, TryStreamExt};
use scylla::client::session::Session;
use scylla::errors::{DbError, ExecutionError, PrepareError, RequestAttemptError};
use scylla::response::{PagingState, PagingStateResponse};
use scylla::statement::Consistency;
use scylla::statement::batch::{Batch, BatchType};
use scylla::statement::unprepared::Statement;
use scylla::value::{
    Counter, CqlDate, CqlDecimal, CqlDuration, CqlTime, CqlTimestamp, CqlTimeuuid, CqlValue, CqlVarint,
    MaybeUnset, Row,
};
use uuid::Uuid;

use crate::{KEYSPACE, Outcome, Report, connect, same, that};

pub async fn all(s: &Session, address: &str, report: &mut Report) {
    report.check("system tables", system_tables(s)).await;
    report.check("create and metadata", metadata(s)).await;
    report.check("all types", types(s)).await;
    report.check("nulls and empty values", nulls(s)).await;
    report.check("paging", paging(s)).await;
    report.check("lightweight transactions", lwt(s)).await;
    report.check("batches", batches(s)).await;
    report.check("counter batch", counter_batch(s)).await;
    report.check("errors", errors(s)).await;
    report.check("prepared again after drop", reprepare(s)).await;
    report.check("client timestamps", timestamps(s)).await;
    report.check("named values", named(s)).await;
    report.check("unset values", unset(s)).await;
    report.check("warnings", warnings(s)).await;
    report.check("tracing", tracing(s)).await;
    report
        .check("1000 at once on one connection", concurrent(s))
        .await;
    report.check("secondary index", index(s)).await;
    report
        .check("schema in a second session", schema_elsewhere(s, address))
        .await;
}

async fn run(s: &Session, cql: &str) -> Outcome {
    s.query_unpaged(cql, ()).await?;
    Ok(())
}

/// The first row of a SELECT.
macro_rules! first {
    ($s:expr, $cql:expr, $values:expr, $row:ty) => {
        $s.query_unpaged($cql, $values)
            .await?
            .into_rows_result()?
            .first_row::<$row>()?
    };
}

async fn system_tables(s: &Session) -> Outcome {
    let (release,) = first!(s, "SELECT release_version FROM system.local", (), (String,));
    that!(release.starts_with("5.0"), "release {release}");
    let state = s.get_cluster_state();
    same!(state.get_nodes_info().len(), 1);
    same!(
        state.get_nodes_info()[0].datacenter.as_deref(),
        Some("datacenter1")
    );
    that!(s.check_schema_agreement().await?.is_some(), "no schema agreement");
    Ok(())
}

async fn metadata(s: &Session) -> Outcome {
    run(s, "CREATE TYPE address (street text, zip int)").await?;
    run(
        s,
        "CREATE TABLE users (org uuid, team int, joined timestamp, name text, motto text static, \
         home frozen<address>, tags set<text>, PRIMARY KEY ((org, team), joined, name)) \
         WITH CLUSTERING ORDER BY (joined DESC, name ASC)",
    )
    .await?;
    run(s, "CREATE INDEX users_motto ON users (motto)").await?;
    s.refresh_metadata().await?;
    let state = s.get_cluster_state();
    let keyspace = state.get_keyspace(KEYSPACE).ok_or("no keyspace")?;
    that!(keyspace.durable_writes, "durable writes");
    let users = keyspace.tables.get("users").ok_or("no table")?;
    same!(users.partition_key, ["org", "team"]);
    same!(users.clustering_key, ["joined", "name"]);
    same!(users.columns.len(), 7);
    that!(keyspace.user_defined_types.contains_key("address"), "no type");
    Ok(())
}

fn uuids() -> (CqlTimeuuid, Uuid) {
    let now = Uuid::now_v1(&[1, 2, 3, 4, 5, 6]);
    (CqlTimeuuid::from_bytes(now.into_bytes()), Uuid::new_v4())
}

fn text(s: &str) -> CqlValue {
    CqlValue::Text(s.to_owned())
}

async fn types(s: &Session) -> Outcome {
    run(
        s,
        "CREATE TABLE everything (k int PRIMARY KEY, a ascii, b bigint, c blob, d boolean, e date, f decimal, \
         g double, h duration, i float, j inet, l smallint, m text, n time, o timestamp, p timeuuid, q tinyint, \
         r uuid, s varint, t list<text>, u set<int>, v map<text, bigint>, w frozen<map<int, frozen<list<text>>>>, \
         x tuple<int, text>, y frozen<address>, z vector<float, 3>, aa address)",
    )
    .await?;
    let (timeuuid, random) = uuids();
    let udt = |street: &str, zip: i32| CqlValue::UserDefinedType {
        keyspace: KEYSPACE.to_owned(),
        name: "address".to_owned(),
        fields: vec![
            ("street".to_owned(), Some(text(street))),
            ("zip".to_owned(), Some(CqlValue::Int(zip))),
        ],
    };
    let values = vec![
        CqlValue::Int(1),
        CqlValue::Ascii("plain".to_owned()),
        CqlValue::BigInt(i64::MIN),
        CqlValue::Blob(vec![0, 255, 16]),
        CqlValue::Boolean(true),
        CqlValue::Date(CqlDate((1 << 31) + 19782)),
        CqlValue::Decimal(CqlDecimal::from_signed_be_bytes_slice_and_exponent(
            &[0xfe, 0x01],
            4,
        )),
        CqlValue::Double(-1.5e300),
        CqlValue::Duration(CqlDuration {
            months: 14,
            days: 3,
            nanoseconds: 5_000_000_000,
        }),
        CqlValue::Float(0.5),
        CqlValue::Inet("2001:db8::1".parse()?),
        CqlValue::SmallInt(i16::MIN),
        text("Ἑλένη 🏺"),
        CqlValue::Time(CqlTime(86_399_999_999_999)),
        CqlValue::Timestamp(CqlTimestamp(1_709_210_096_789)),
        CqlValue::Timeuuid(timeuuid),
        CqlValue::TinyInt(i8::MIN),
        CqlValue::Uuid(random),
        CqlValue::Varint(CqlVarint::from_signed_bytes_be(vec![0x80; 20])),
        CqlValue::List(vec![text("b"), text("a")]),
        CqlValue::Set(vec![CqlValue::Int(1), CqlValue::Int(3)]),
        CqlValue::Map(vec![(text("x"), CqlValue::BigInt(1))]),
        CqlValue::Map(vec![(
            CqlValue::Int(7),
            CqlValue::List(vec![text("p"), text("")]),
        )]),
        CqlValue::Tuple(vec![Some(CqlValue::Int(5)), None]),
        udt("High", 12),
        CqlValue::Vector(vec![
            CqlValue::Float(0.5),
            CqlValue::Float(-1.0),
            CqlValue::Float(2.0),
        ]),
        udt("Low", 13),
    ];
    let names = "k, a, b, c, d, e, f, g, h, i, j, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa";
    let marks = vec!["?"; values.len()].join(", ");
    s.query_unpaged(
        format!("INSERT INTO everything ({names}) VALUES ({marks})"),
        &values,
    )
    .await?;
    let row = first!(
        s,
        format!("SELECT {names} FROM everything WHERE k = ?"),
        (1,),
        Row
    );
    for (i, (got, want)) in row.columns.into_iter().zip(values).enumerate() {
        that!(
            got.as_ref() == Some(&want),
            "column {i}: got {got:?}, want {want:?}"
        );
    }
    Ok(())
}

async fn nulls(s: &Session) -> Outcome {
    let insert = s
        .prepare("INSERT INTO everything (k, a, m, t, c) VALUES (?, ?, ?, ?, ?)")
        .await?;
    s.execute_unpaged(
        &insert,
        (2, None::<String>, "", Vec::<String>::new(), Vec::<u8>::new()),
    )
    .await?;
    type Nullable = (
        Option<String>,
        Option<String>,
        Option<Vec<String>>,
        Option<Vec<u8>>,
    );
    let row = first!(s, "SELECT a, m, t, c FROM everything WHERE k = 2", (), Nullable);
    same!(row, (None, Some(String::new()), None, Some(Vec::new())));
    Ok(())
}

async fn paging(s: &Session) -> Outcome {
    run(s, "CREATE TABLE pages (k int, c int, v text, PRIMARY KEY (k, c))").await?;
    let insert = s.prepare("INSERT INTO pages (k, c, v) VALUES (?, ?, ?)").await?;
    for k in 0..4 {
        for c in 0..50 {
            s.execute_unpaged(&insert, (k, c, format!("{k}.{c}"))).await?;
        }
    }
    for size in [1, 3, 50, 199, 200, 201, 5000] {
        let statement = Statement::new("SELECT v FROM pages").with_page_size(size);
        let seen: BTreeSet<String> = s
            .query_iter(statement, ())
            .await?
            .rows_stream::<(String,)>()?
            .map_ok(|(v,)| v)
            .try_collect()
            .await?;
        same!(seen.len(), 200);
        let mut slice = s
            .prepare("SELECT c FROM pages WHERE k = ? AND c < ? ORDER BY c DESC")
            .await?;
        slice.set_page_size(size);
        let got: Vec<(i32,)> = s
            .execute_iter(slice, (2, 40))
            .await?
            .rows_stream::<(i32,)>()?
            .try_collect()
            .await?;
        that!(
            got.iter().map(|r| r.0).eq((0..40).rev()),
            "page size {size}: {got:?}"
        );
    }
    let (mut state, mut rows, mut pages) = (PagingState::start(), 0, 0);
    loop {
        let statement = Statement::new("SELECT v FROM pages").with_page_size(30);
        let (page, next) = s.query_single_page(statement, (), state).await?;
        rows += page.into_rows_result()?.rows_num();
        pages += 1;
        match next {
            PagingStateResponse::HasMorePages { state: more } => state = more,
            PagingStateResponse::NoMorePages => break,
        }
    }
    same!(rows, 200);
    that!(pages >= 7, "{pages} pages");
    Ok(())
}

async fn applied(s: &Session, cql: &str) -> Result<bool, Box<dyn std::error::Error + Send + Sync>> {
    let row = first!(s, cql, (), Row);
    match row.columns.first() {
        Some(Some(CqlValue::Boolean(applied))) => Ok(*applied),
        other => Err(format!("[applied] is {other:?}").into()),
    }
}

async fn lwt(s: &Session) -> Outcome {
    run(s, "CREATE TABLE cas (k int PRIMARY KEY, v int, w text)").await?;
    let insert = s
        .prepare("INSERT INTO cas (k, v, w) VALUES (?, ?, ?) IF NOT EXISTS")
        .await?;
    type Existing = (bool, Option<i32>, Option<i32>, Option<String>);
    let row = s
        .execute_unpaged(&insert, (1, 1, "one"))
        .await?
        .into_rows_result()?
        .first_row::<Row>()?;
    same!(row.columns.first(), Some(&Some(CqlValue::Boolean(true))));
    let row = s
        .execute_unpaged(&insert, (1, 2, "two"))
        .await?
        .into_rows_result()?
        .first_row::<Existing>()?;
    same!(row, (false, Some(1), Some(1), Some("one".to_owned())));
    let row = first!(
        s,
        "UPDATE cas SET v = 5 WHERE k = 1 IF v = 9",
        (),
        (bool, Option<i32>)
    );
    same!(row, (false, Some(1)));
    that!(
        applied(s, "UPDATE cas SET v = 5 WHERE k = 1 IF v = 1 AND w = 'one'").await?,
        "not applied"
    );
    that!(
        !applied(s, "DELETE FROM cas WHERE k = 99 IF EXISTS").await?,
        "deleted what is not there"
    );
    let mut batch = Batch::new(BatchType::Logged);
    batch.append_statement("UPDATE cas SET w = 'batched' WHERE k = 1 IF v = 5");
    batch.append_statement("UPDATE cas SET v = 6 WHERE k = 1");
    let row = s
        .batch(&batch, ((), ()))
        .await?
        .into_rows_result()?
        .first_row::<Row>()?;
    same!(row.columns.first(), Some(&Some(CqlValue::Boolean(true))));
    let mut select = Statement::new("SELECT v, w FROM cas WHERE k = 1");
    select.set_consistency(Consistency::Serial);
    same!(first!(s, select, (), (i32, String)), (6, "batched".to_owned()));
    Ok(())
}

async fn batches(s: &Session) -> Outcome {
    run(s, "CREATE TABLE b1 (k int PRIMARY KEY, v text)").await?;
    run(s, "CREATE TABLE b2 (k int, c int, v text, PRIMARY KEY (k, c))").await?;
    let insert = s.prepare("INSERT INTO b2 (k, c, v) VALUES (?, ?, ?)").await?;
    for (k, kind) in [(0, BatchType::Logged), (1, BatchType::Unlogged)] {
        let mut batch = Batch::new(kind);
        let mut values: Vec<Vec<CqlValue>> = Vec::new();
        for c in 0..30 {
            batch.append_statement(insert.clone());
            values.push(vec![CqlValue::Int(k), CqlValue::Int(c), text("x")]);
        }
        batch.append_statement("INSERT INTO b1 (k, v) VALUES (?, ?)");
        values.push(vec![CqlValue::Int(k), text("y")]);
        batch.append_statement("DELETE FROM b2 WHERE k = ? AND c = ?");
        values.push(vec![CqlValue::Int(k), CqlValue::Int(29)]);
        s.batch(&batch, values).await?;
    }
    same!(first!(s, "SELECT count(*) FROM b2", (), (i64,)), (58,));
    same!(first!(s, "SELECT count(*) FROM b1", (), (i64,)), (2,));
    Ok(())
}

async fn counter_batch(s: &Session) -> Outcome {
    run(s, "CREATE TABLE counters (k int PRIMARY KEY, n counter)").await?;
    let add = s.prepare("UPDATE counters SET n = n + ? WHERE k = ?").await?;
    let mut batch = Batch::new(BatchType::Counter);
    let mut values = Vec::new();
    for i in 0..10 {
        batch.append_statement(add.clone());
        values.push((Counter(i), (i % 2) as i32));
    }
    s.batch(&batch, values).await?;
    same!(
        first!(s, "SELECT n FROM counters WHERE k = 1", (), (Counter,)),
        (Counter(25),)
    );
    Ok(())
}

async fn errors(s: &Session) -> Outcome {
    for (cql, want) in [
        ("SELEC 1", "SyntaxError"),
        ("SELECT * FROM nothing_here", "Invalid"),
        ("SELECT nothing FROM b1", "Invalid"),
        ("INSERT INTO b2 (k, v) VALUES (1, 'x')", "Invalid"),
        (
            "CREATE KEYSPACE k WITH replication = {'class': 'Nope'}",
            "ConfigError",
        ),
        ("CREATE TABLE b1 (k int PRIMARY KEY)", "AlreadyExists"),
    ] {
        match s.query_unpaged(cql, ()).await {
            Err(ExecutionError::LastAttemptError(RequestAttemptError::DbError(e, _))) => {
                that!(format!("{e:?}").starts_with(want), "{cql}: {e:?}, want {want}");
                if let DbError::AlreadyExists { keyspace, table } = e {
                    same!((keyspace.as_str(), table.as_str()), (KEYSPACE, "b1"));
                }
            }
            Err(e) => return Err(format!("{cql}: {e:?}").into()),
            Ok(_) => return Err(format!("{cql}: no error").into()),
        }
    }
    match s.prepare("SELECT nothing FROM b1").await {
        Err(PrepareError::AllAttemptsFailed { .. }) => Ok(()),
        other => Err(format!("prepare: {other:?}").into()),
    }
}

async fn reprepare(s: &Session) -> Outcome {
    run(s, "CREATE TABLE prep (k int PRIMARY KEY, v int)").await?;
    let insert = s.prepare("INSERT INTO prep (k, v) VALUES (?, ?)").await?;
    s.execute_unpaged(&insert, (1, 1)).await?;
    run(s, "DROP TABLE prep").await?;
    run(s, "CREATE TABLE prep (k int PRIMARY KEY, v int)").await?;
    s.execute_unpaged(&insert, (2, 2)).await?;
    same!(first!(s, "SELECT k FROM prep", (), (i32,)), (2,));
    Ok(())
}

async fn timestamps(s: &Session) -> Outcome {
    run(s, "CREATE TABLE ts (k int PRIMARY KEY, v text)").await?;
    let mut insert = s.prepare("INSERT INTO ts (k, v) VALUES (?, ?)").await?;
    insert.set_timestamp(Some(4242));
    s.execute_unpaged(&insert, (1, "x")).await?;
    insert.set_timestamp(Some(4241));
    s.execute_unpaged(&insert, (1, "older")).await?;
    let row = first!(s, "SELECT v, writetime(v) FROM ts WHERE k = 1", (), (String, i64));
    same!(row, ("x".to_owned(), 4242));
    let mut batch = Batch::new(BatchType::Logged);
    batch.append_statement("INSERT INTO ts (k, v) VALUES (2, 'b')");
    batch.set_timestamp(Some(77));
    s.batch(&batch, ((),)).await?;
    same!(
        first!(s, "SELECT writetime(v) FROM ts WHERE k = 2", (), (i64,)),
        (77,)
    );
    Ok(())
}

async fn named(s: &Session) -> Outcome {
    let insert = s.prepare("INSERT INTO ts (k, v) VALUES (:key, :value)").await?;
    let names: Vec<&str> = insert.get_variable_col_specs().iter().map(|c| c.name()).collect();
    same!(names, ["key", "value"]);
    let values = std::collections::HashMap::from([("value", text("named")), ("key", CqlValue::Int(3))]);
    s.execute_unpaged(&insert, values).await?;
    same!(
        first!(s, "SELECT v FROM ts WHERE k = 3", (), (String,)),
        ("named".to_owned(),)
    );
    Ok(())
}

async fn unset(s: &Session) -> Outcome {
    run(s, "CREATE TABLE unset (k int PRIMARY KEY, a int, b int)").await?;
    let insert = s.prepare("INSERT INTO unset (k, a, b) VALUES (?, ?, ?)").await?;
    s.execute_unpaged(&insert, (1, 10, 20)).await?;
    s.execute_unpaged(&insert, (1, MaybeUnset::<i32>::Unset, None::<i32>))
        .await?;
    same!(
        first!(s, "SELECT a, b FROM unset", (), (Option<i32>, Option<i32>)),
        (Some(10), None)
    );
    Ok(())
}

async fn warnings(s: &Session) -> Outcome {
    let result = s.query_unpaged("SELECT count(*) FROM pages", ()).await?;
    let warnings: Vec<&str> = result.warnings().collect();
    same!(warnings, ["Aggregation query used without partition key"]);
    Ok(())
}

async fn tracing(s: &Session) -> Outcome {
    let mut statement = Statement::new("SELECT v FROM pages LIMIT 1");
    statement.set_tracing(true);
    that!(
        s.query_unpaged(statement, ()).await?.tracing_id().is_some(),
        "no tracing id"
    );
    Ok(())
}

async fn concurrent(s: &Session) -> Outcome {
    run(s, "CREATE TABLE conc (k int PRIMARY KEY, v text)").await?;
    let insert = s.prepare("INSERT INTO conc (k, v) VALUES (?, ?)").await?;
    let select = s.prepare("SELECT v FROM conc WHERE k = ?").await?;
    futures::stream::iter(0..3000)
        .map(Ok)
        .try_for_each_concurrent(1000, |k: i32| {
            let (insert, select) = (&insert, &select);
            async move {
                let value = format!("{}{k}", "x".repeat(k as usize % 100));
                s.execute_unpaged(insert, (k, &value)).await?;
                let (got,) = s
                    .execute_unpaged(select, (k,))
                    .await?
                    .into_rows_result()?
                    .first_row::<(String,)>()?;
                same!(got, value);
                Ok(())
            }
        })
        .await
}

async fn index(s: &Session) -> Outcome {
    run(s, "CREATE INDEX conc_v ON conc (v)").await?;
    let select = s.prepare("SELECT k FROM conc WHERE v = ?").await?;
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        if let Ok(result) = s.execute_unpaged(&select, ("x1501",)).await
            && result
                .into_rows_result()?
                .first_row::<(i32,)>()
                .is_ok_and(|r| r == (1501,))
        {
            break;
        }
        that!(Instant::now() < deadline, "index: not within 30 s");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    run(s, "UPDATE conc SET v = 'moved' WHERE k = 1501").await?;
    same!(
        s.execute_unpaged(&select, ("x1501",))
            .await?
            .into_rows_result()?
            .rows_num(),
        0
    );
    let moved = s
        .execute_unpaged(&select, ("moved",))
        .await?
        .into_rows_result()?
        .first_row::<(i32,)>()?;
    same!(moved, (1501,));
    Ok(())
}

/// Checks that changes of the schema are seen after a refresh. This driver reads the schema on connecting and on demand, and ignores
/// events.
async fn schema_elsewhere(s: &Session, address: &str) -> Outcome {
    let second = connect(address, None, Some(KEYSPACE)).await?;
    let knows = |name: &str| {
        second
            .get_cluster_state()
            .get_keyspace(KEYSPACE)
            .is_some_and(|k| k.tables.contains_key(name))
    };
    that!(knows("conc") && !knows("seen"), "the first reading");
    run(s, "CREATE TABLE seen (k int PRIMARY KEY)").await?;
    second.refresh_metadata().await?;
    that!(knows("seen"), "the new table is not seen");
    run(s, "DROP TABLE seen").await?;
    second.refresh_metadata().await?;
    that!(!knows("seen"), "the dropped table is still seen");
    Ok(())
}
