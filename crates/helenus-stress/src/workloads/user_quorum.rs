//! `user-quorum`: a table of users with 27 columns and six indexes.

use std::collections::HashMap;

use anyhow::Result;
use async_trait::async_trait;
use rand::Rng;
use scylla::SerializeRow;
use scylla::deserialize::row::ColumnIterator;
use scylla::statement::prepared::PreparedStatement;

use super::{Class, Field, Info, Operation, OperationOutcome, ReadSummary, Setup, Workload};
use crate::data::fields::Generator;
use crate::data::value::ValueFormat;
use crate::db::{Db, OpError};
use crate::operation::Slot;

/// Number of different values of the indexed column `status`.
const STATUSES: i32 = 1000;
/// Indexed columns whose values are unique.
const UNIQUE: [&str; 5] = ["userid", "loginid", "email", "phone", "username"];

pub const INFO: Info = Info {
    name: "user-quorum",
    aliases: &[],
    about: "Users with 27 columns, found by id or by one of six indexes. Meant for --cl quorum",
    operations: &[
        Operation {
            name: "write_read",
            class: Class::Write,
            weight: 0.25,
            about: "writes a user, then reads it",
        },
        Operation {
            name: "read_index",
            class: Class::Read,
            weight: 0.25,
            about: "a user by userid, loginid, email, phone or username",
        },
        Operation {
            name: "read",
            class: Class::Read,
            weight: 0.25,
            about: "a user by id",
        },
        Operation {
            name: "write",
            class: Class::Write,
            weight: 0.25,
            about: "writes a user",
        },
    ],
    parameters: &[],
    fields: &[Field {
        name: "user.password",
        default: "random(32,64)",
    }],
    partitions: 100_000,
    pieces: None,
    shared_keys: true,
    pools: None,
    published: &[
        "Cassandra, RF 3, QUORUM, 1,000 threads, on 3 nodes and on 5:",
        "write, then read it: 8,098/s and 11,430/s; read by index: 7,848/s at 124 ms and 894/s at 1.1 s",
        "read: 20,099/s and 22,684/s; write: 12,805/s and 18,015/s",
    ],
    schema: |_| Ok(schema()),
    prepare: |setup, db| Box::pin(async move { Ok(Box::new(Users::new(setup, db).await?) as _) }),
};

fn schema() -> Vec<String> {
    let table = "CREATE TABLE IF NOT EXISTS users (id text PRIMARY KEY, channel text, countrycode text, createdby text, \
                 createddate text, currentlogintime text, dob text, email text, emailverified boolean, firstname text, \
                 flagsvalue int, framework map<text, frozen<list<text>>>, gender text, grade list<text>, language list<text>, \
                 lastname text, loginid text, password text, phone text, phoneverified boolean, \
                 profilevisibility map<text, text>, status int, updatedby text, updateddate text, userid text, username text, \
                 usertype text)";
    let index = |column: &str| format!("CREATE INDEX IF NOT EXISTS users_{column} ON users ({column})");
    std::iter::once(table.to_owned())
        .chain(UNIQUE.iter().chain(&["status"]).map(|column| index(column)))
        .collect()
}

struct Users {
    setup: Setup,
    password: Generator,
    insert: PreparedStatement,
    select: PreparedStatement,
    by_index: Vec<PreparedStatement>,
    constant: Constant,
}

/// Returns the value of a unique column for a user.
fn unique(column: &str, id: &str) -> String {
    match column {
        "email" => format!("{id}@example.org"),
        _ => format!("{column}-{id}"),
    }
}

impl Users {
    async fn new(setup: &Setup, db: &Db) -> Result<Self> {
        let mut by_index = Vec::new();
        for column in UNIQUE {
            by_index.push(
                db.prepare(&format!("SELECT id, password FROM users WHERE {column} = ?"))
                    .await?,
            );
        }
        let columns = "id, channel, countrycode, createdby, createddate, currentlogintime, dob, email, emailverified, firstname, \
                       flagsvalue, framework, gender, grade, language, lastname, loginid, password, phone, phoneverified, \
                       profilevisibility, status, updatedby, updateddate, userid, username, usertype";
        let marks = vec!["?"; columns.split(',').count()].join(", ");
        Ok(Self {
            setup: setup.clone(),
            password: setup.generator("user.password")?,
            insert: db
                .prepare(&format!("INSERT INTO users ({columns}) VALUES ({marks})"))
                .await?,
            select: db.prepare("SELECT * FROM users WHERE id = ?").await?,
            by_index,
            constant: Constant::default(),
        })
    }

    async fn write(&self, db: &Db, slot: &mut Slot) -> OperationOutcome {
        slot.fill(self.password, ValueFormat::Text);
        let status = slot.rng.random_range(0..STATUSES);
        let own = UNIQUE.map(|column| unique(column, slot.key()));
        let user = User::new(slot.key(), &own, slot.text(), status, &self.constant);
        db.execute(&self.insert, user).await?;
        Ok(ReadSummary::rows(1))
    }

    async fn read(&self, db: &Db, expected: bool, slot: &Slot) -> OperationOutcome {
        let result = db.execute(&self.select, (slot.key(),)).await?;
        let rows = result.into_rows_result().map_err(OpError::unreadable)?;
        // Only one of the 27 columns can be verified.
        let Some(mut columns) = rows
            .maybe_first_row::<ColumnIterator>()
            .map_err(OpError::unreadable)?
        else {
            return Ok(ReadSummary::nothing(expected));
        };
        let password = columns
            .find_map(|column| column.ok().filter(|column| column.spec.name() == "password"))
            .and_then(|column| column.slice);
        let password = password.map_or(&[][..], |slice| slice.as_slice());
        Ok(ReadSummary::row(slot.is_sound(ValueFormat::Text, password)))
    }

    /// Finds the slot's user by one of its indexed columns.
    async fn read_by_index(&self, db: &Db, index: usize, expected: bool, slot: &Slot) -> OperationOutcome {
        let value = unique(UNIQUE[index], slot.key());
        let result = db.execute(&self.by_index[index], (value,)).await?;
        let rows = result.into_rows_result().map_err(OpError::unreadable)?;
        let row = rows
            .maybe_first_row::<(&str, &str)>()
            .map_err(OpError::unreadable)?;
        Ok(match row {
            None => ReadSummary::nothing(expected),
            Some((id, password)) => {
                ReadSummary::row(id == slot.key() && slot.is_sound(ValueFormat::Text, password.as_bytes()))
            }
        })
    }
}

#[async_trait]
impl Workload for Users {
    async fn perform(&self, db: &Db, operation: usize, slot: &mut Slot) -> OperationOutcome {
        let key = slot.pick();
        slot.set_key(&self.setup.keys, key);
        match INFO.operations[operation].name {
            "write_read" => {
                self.write(db, slot).await?;
                self.read(db, true, slot).await
            }
            "read_index" => {
                let index = slot.rng.random_range(0..UNIQUE.len());
                self.read_by_index(db, index, false, slot).await
            }
            "read" => self.read(db, false, slot).await,
            _ => self.write(db, slot).await,
        }
    }

    async fn populate(&self, db: &Db, key: u64, slot: &mut Slot) -> OperationOutcome {
        slot.set_key(&self.setup.keys, key);
        self.write(db, slot).await
    }

    async fn verify(&self, db: &Db, key: u64, slot: &mut Slot) -> OperationOutcome {
        slot.set_key(&self.setup.keys, key);
        let mut found = self.read(db, true, slot).await?;
        for index in 0..UNIQUE.len() {
            let by_index = self.read_by_index(db, index, true, slot).await?;
            found.missing += by_index.missing;
            found.corrupt += by_index.corrupt;
        }
        found.hits = u32::from(found.missing + found.corrupt == 0);
        Ok(found)
    }
}

/// Column values that all users share.
struct Constant {
    framework: HashMap<&'static str, Vec<&'static str>>,
    visibility: HashMap<&'static str, &'static str>,
}

impl Default for Constant {
    fn default() -> Self {
        Self {
            framework: HashMap::from([("board", vec!["state"]), ("medium", vec!["english", "hindi"])]),
            visibility: HashMap::from([("email", "private"), ("phone", "private")]),
        }
    }
}

/// A row. Its fields are in the order of the INSERT's columns.
#[derive(SerializeRow)]
#[scylla(flavor = "enforce_order", skip_name_checks)]
struct User<'a> {
    id: &'a str,
    channel: &'a str,
    countrycode: &'a str,
    createdby: &'a str,
    createddate: &'a str,
    currentlogintime: &'a str,
    dob: &'a str,
    email: &'a str,
    emailverified: bool,
    firstname: &'a str,
    flagsvalue: i32,
    framework: &'a HashMap<&'static str, Vec<&'static str>>,
    gender: &'a str,
    grade: &'a [&'a str],
    language: &'a [&'a str],
    lastname: &'a str,
    loginid: &'a str,
    password: &'a str,
    phone: &'a str,
    phoneverified: bool,
    profilevisibility: &'a HashMap<&'static str, &'static str>,
    status: i32,
    updatedby: &'a str,
    updateddate: &'a str,
    userid: &'a str,
    username: &'a str,
    usertype: &'a str,
}

impl<'a> User<'a> {
    fn new(
        id: &'a str,
        own: &'a [String; 5],
        password: &'a str,
        status: i32,
        constant: &'a Constant,
    ) -> Self {
        let [userid, loginid, email, phone, username] = own;
        Self {
            id,
            channel: "web",
            countrycode: "+91",
            createdby: "system",
            createddate: "2020-11-25 10:00:00",
            currentlogintime: "2020-11-25 10:00:00",
            dob: "1990-01-01",
            email,
            emailverified: true,
            firstname: "Asha",
            flagsvalue: 3,
            framework: &constant.framework,
            gender: "female",
            grade: &["class 7", "class 8"],
            language: &["english", "hindi"],
            lastname: "Rao",
            loginid,
            password,
            phone,
            phoneverified: true,
            profilevisibility: &constant.visibility,
            status,
            updatedby: "system",
            updateddate: "2020-11-26 10:00:00",
            userid,
            username,
            usertype: "teacher",
        }
    }
}
