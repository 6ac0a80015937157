//! Names and passwords that the server chooses (CREATE GENERATED ROLE, GENERATED PASSWORD).

use std::borrow::Cow;

use bytes::Bytes;
use helenus_cql::ast::{AlterRole, CreateRole, Statement};
use helenus_cql::types::CqlType;
use rand::Rng;
use uuid::Uuid;

use super::list::table;
use crate::response::Response;
use crate::schema::roles::Roles;

/// Characters of a generated password. Those that look alike are left out.
const CHARACTERS: &[u8] = b"ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnpqrstuvwxyz23456789!#%*+-=?@_";

/// Length of a generated password. It has about 120 bits of randomness.
const PASSWORD_LEN: usize = 20;

/// The parts that were chosen for a statement.
#[derive(Default)]
pub(crate) struct Generated {
    name: Option<String>,
    password: Option<String>,
}

impl Generated {
    /// Returns true if the parts belong to the role that the statement has left.
    pub(crate) fn takes_effect(&self, statement: &Statement, access: &Roles) -> bool {
        let (Statement::CreateRole(CreateRole { name, options, .. })
        | Statement::AlterRole(AlterRole { name, options, .. })) = statement
        else {
            return false;
        };
        let role = access.role(name);
        let is_generated = self.name.is_some() || self.password.is_some();
        let has_password =
            |hash: &Option<String>| self.password.is_none() || *hash == options.hashed_password;
        is_generated && role.is_some_and(|role| has_password(&role.salted_hash))
    }

    /// Returns the answer with the chosen name and password.
    pub(crate) fn answer(self) -> Response {
        let (name, password) = (self.name.map(Bytes::from), self.password.map(Bytes::from));
        let name_column = ("generated_name", CqlType::TEXT);
        let password_column = ("generated_password", CqlType::TEXT);
        match (name, password) {
            (Some(name), Some(password)) => table(
                "roles",
                [name_column, password_column],
                std::iter::once(vec![name, password]),
            ),
            (Some(name), None) => table("roles", [name_column], std::iter::once(vec![name])),
            (None, Some(password)) => table("roles", [password_column], std::iter::once(vec![password])),
            (None, None) => Response::Void,
        }
    }
}

/// Returns the statement with a name and a password where it leaves them to the server.
pub(crate) fn with_generated(statement: &Statement) -> (Cow<'_, Statement>, Generated) {
    let mut generated = Generated::default();
    let is_needed = match statement {
        Statement::CreateRole(create) => create.is_name_generated || create.options.generated_password,
        Statement::AlterRole(alter) => alter.options.generated_password,
        _ => false,
    };
    if !is_needed {
        return (Cow::Borrowed(statement), generated);
    }
    let mut statement = statement.clone();
    if let Statement::CreateRole(create) = &mut statement
        && create.is_name_generated
    {
        create.name = role_name();
        generated.name = Some(create.name.clone());
    }
    if let Statement::CreateRole(CreateRole { options, .. }) | Statement::AlterRole(AlterRole { options, .. }) =
        &mut statement
        && options.generated_password
    {
        let password = password();
        options.password = Some(password.clone());
        generated.password = Some(password);
    }
    (Cow::Owned(statement), generated)
}

/// Returns a new name: a letter and 31 hexadecimal digits, which need no quotes.
fn role_name() -> String {
    let digits = Uuid::new_v4().simple().to_string();
    format!("r{}", digits.get(1..).unwrap_or(&digits))
}

fn password() -> String {
    let mut random = rand::rng();
    let character = |_| {
        let place = random.random_range(0..CHARACTERS.len());
        char::from(CHARACTERS.get(place).copied().unwrap_or(b'x'))
    };
    (0..PASSWORD_LEN).map(character).collect()
}
