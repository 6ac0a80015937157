//! Roles, users and identities.

use super::{Parsed, Parser};
use crate::ast::{Access, AddIdentity, AlterRole, CreateRole, DropIdentity, DropRole, RoleOptions};
use crate::error::CqlError;
use crate::lexer::Kind;

impl Parser<'_> {
    /// Parses rule `createRoleStatement`, with or without GENERATED.
    pub(super) fn create_role(&mut self) -> Parsed<CreateRole> {
        self.expect(Kind::Create)?;
        let is_name_generated = self.accept(Kind::Generated);
        self.expect(Kind::Role)?;
        let if_not_exists = !is_name_generated && self.if_not_exists()?;
        let name = match is_name_generated {
            true => String::new(),
            false => self.role_name()?,
        };
        let mut options = self.role_options()?;
        options.login.get_or_insert(false);
        options.superuser.get_or_insert(false);
        Ok(CreateRole {
            name,
            is_name_generated,
            if_not_exists,
            options,
        })
    }

    /// Parses rule `alterRoleStatement`.
    pub(super) fn alter_role(&mut self) -> Parsed<AlterRole> {
        self.expect_all(&[Kind::Alter, Kind::Role])?;
        Ok(AlterRole {
            if_exists: self.if_exists()?,
            name: self.role_name()?,
            options: self.role_options()?,
        })
    }

    /// Parses rule `dropRoleStatement`.
    pub(super) fn drop_role(&mut self) -> Parsed<DropRole> {
        self.expect_all(&[Kind::Drop, Kind::Role])?;
        Ok(DropRole {
            if_exists: self.if_exists()?,
            name: self.role_name()?,
        })
    }

    /// Parses `WITH` and rule `roleOptions`, or nothing.
    fn role_options(&mut self) -> Parsed<RoleOptions> {
        let mut options = RoleOptions::default();
        if self.accept(Kind::With) {
            self.role_option(&mut options)?;
            while self.accept(Kind::And) {
                self.role_option(&mut options)?;
            }
        }
        exclusive_passwords(&options)?;
        Ok(options)
    }

    /// Parses rule `roleOption`.
    fn role_option(&mut self, options: &mut RoleOptions) -> Parsed<()> {
        match self.kind() {
            Kind::Password => {
                self.expect_all(&[Kind::Password, Kind::EqSign])?;
                let password = self.expect_string()?;
                once(&mut options.password, password, "PASSWORD")
            }
            Kind::Generated => {
                self.expect_all(&[Kind::Generated, Kind::Password])?;
                match std::mem::replace(&mut options.generated_password, true) {
                    true => once(&mut Some(()), (), "GENERATED_PASSWORD"),
                    false => Ok(()),
                }
            }
            Kind::Hashed => {
                self.expect_all(&[Kind::Hashed, Kind::Password, Kind::EqSign])?;
                let password = self.expect_string()?;
                once(&mut options.hashed_password, password, "HASHED_PASSWORD")
            }
            Kind::Options => {
                self.expect_all(&[Kind::Options, Kind::EqSign])?;
                let entries = self.full_map_literal()?;
                let map = self.property_map(entries)?;
                once(&mut options.options, map, "OPTIONS")
            }
            Kind::Superuser => {
                let value = self.boolean_option()?;
                once(&mut options.superuser, value, "SUPERUSER")
            }
            Kind::Login => {
                let value = self.boolean_option()?;
                once(&mut options.login, value, "LOGIN")
            }
            Kind::Access => self.access_option(options),
            _ => Err(self.no_viable()),
        }
    }

    fn boolean_option(&mut self) -> Parsed<bool> {
        self.advance();
        self.expect(Kind::EqSign)?;
        if self.accept(Kind::True) {
            return Ok(true);
        }
        self.expect(Kind::False)?;
        Ok(false)
    }

    /// Parses `ACCESS TO DATACENTERS ...` or `ACCESS FROM CIDRS ...`.
    fn access_option(&mut self, options: &mut RoleOptions) -> Parsed<()> {
        let datacenters = match self.kind_at(1) {
            Kind::To => true,
            Kind::From => false,
            _ => return Err(self.no_viable_at(1)),
        };
        let objects = if datacenters {
            Kind::Datacenters
        } else {
            Kind::Cidrs
        };
        let all = match self.kind_at(2) {
            Kind::All => true,
            kind if kind == objects => false,
            _ => return Err(self.no_viable_at(2)),
        };
        self.advance();
        self.advance();
        if all {
            self.advance();
        }
        self.expect(objects)?;
        let access = if all {
            Access::All
        } else {
            self.expect(Kind::LeftBrace)?;
            let names = self.comma_separated(Self::expect_string)?;
            self.expect(Kind::RightBrace)?;
            Access::Named(names)
        };
        if datacenters {
            options.datacenters = Some(access);
        } else {
            options.cidrs = Some(access);
        }
        Ok(())
    }

    /// Parses rule `createUserStatement`: a role that may log in.
    pub(super) fn create_user(&mut self) -> Parsed<CreateRole> {
        self.expect_all(&[Kind::Create, Kind::User])?;
        let if_not_exists = self.if_not_exists()?;
        let name = self.user_name()?;
        let mut options = self.user_options()?;
        options.login = Some(true);
        options.superuser.get_or_insert(false);
        Ok(CreateRole {
            name,
            is_name_generated: false,
            if_not_exists,
            options,
        })
    }

    /// Parses rule `alterUserStatement`.
    pub(super) fn alter_user(&mut self) -> Parsed<AlterRole> {
        self.expect_all(&[Kind::Alter, Kind::User])?;
        Ok(AlterRole {
            if_exists: self.if_exists()?,
            name: self.user_name()?,
            options: self.user_options()?,
        })
    }

    /// Parses rule `dropUserStatement`.
    pub(super) fn drop_user(&mut self) -> Parsed<DropRole> {
        self.expect_all(&[Kind::Drop, Kind::User])?;
        Ok(DropRole {
            if_exists: self.if_exists()?,
            name: self.user_name()?,
        })
    }

    /// Parses `WITH PASSWORD '...' SUPERUSER`, which has no equal signs here.
    fn user_options(&mut self) -> Parsed<RoleOptions> {
        let mut options = RoleOptions::default();
        if self.accept(Kind::With) {
            if self.accept(Kind::Generated) {
                self.expect(Kind::Password)?;
                options.generated_password = true;
                self.superuser_option(&mut options);
                return Ok(options);
            }
            let hashed = self.accept(Kind::Hashed);
            if !hashed && !self.at(Kind::Password) {
                return Err(self.no_viable());
            }
            self.expect(Kind::Password)?;
            let password = Some(self.expect_string()?);
            if hashed {
                options.hashed_password = password;
            } else {
                options.password = password;
            }
        }
        self.superuser_option(&mut options);
        Ok(options)
    }

    fn superuser_option(&mut self, options: &mut RoleOptions) {
        if self.accept(Kind::Superuser) {
            options.superuser = Some(true);
        } else if self.accept(Kind::NoSuperuser) {
            options.superuser = Some(false);
        }
    }

    /// Parses rule `username`. The case is kept.
    fn user_name(&mut self) -> Parsed<String> {
        self.plain_text(
            "Quoted strings are are not supported for user names and USER is deprecated, please use ROLE",
        )
    }

    /// Parses rule `identity`.
    fn identity(&mut self) -> Parsed<String> {
        self.plain_text("Quoted strings are are not supported for identity")
    }

    fn plain_text(&mut self, quoted_refused: &str) -> Parsed<String> {
        match self.kind() {
            Kind::Identifier | Kind::StringLiteral | Kind::DollarString => {
                let token = self.advance();
                Ok(self.token_text(token))
            }
            Kind::QuotedName => Err(self.recognition_error(quoted_refused)),
            _ => Err(self.no_viable()),
        }
    }

    /// Parses rule `addIdentityStatement`.
    pub(super) fn add_identity(&mut self) -> Parsed<AddIdentity> {
        self.expect_all(&[Kind::Add, Kind::Identity])?;
        let if_not_exists = self.if_not_exists()?;
        let identity = self.identity()?;
        self.expect_all(&[Kind::To, Kind::Role])?;
        Ok(AddIdentity {
            identity,
            role: self.identity()?,
            if_not_exists,
        })
    }

    /// Parses rule `dropIdentityStatement`.
    pub(super) fn drop_identity(&mut self) -> Parsed<DropIdentity> {
        self.expect_all(&[Kind::Drop, Kind::Identity])?;
        Ok(DropIdentity {
            if_exists: self.if_exists()?,
            identity: self.identity()?,
        })
    }
}

fn once<T>(option: &mut Option<T>, value: T, name: &str) -> Parsed<()> {
    if option.replace(value).is_some() {
        return Err(CqlError::Syntax(format!(
            "Multiple definition for property '{name}'"
        )));
    }
    Ok(())
}

fn exclusive_passwords(options: &RoleOptions) -> Parsed<()> {
    let given = [
        (options.password.is_some(), "password"),
        (options.hashed_password.is_some(), "hashed password"),
        (options.generated_password, "generated password"),
    ];
    let mut given = given.iter().filter(|(is_given, _)| *is_given);
    match (given.next(), given.next()) {
        (Some((_, first)), Some((_, second))) => Err(CqlError::Syntax(format!(
            "Options '{first}' and '{second}' are mutually exclusive"
        ))),
        _ => Ok(()),
    }
}
