//! USING TIMESTAMP and USING TTL (Cassandra's `Attributes`).

use helenus_cql::ast::UsingClause;
use helenus_cql::error::CqlError;
use helenus_cql::types::CqlType;
use helenus_row::row::Expiry;

use crate::analysis::terms::Term;
use crate::analysis::{EvalContext, PlanContext};
use crate::request::BoundValue;
use crate::response::ColumnSpec;
use crate::schema::Table;

/// 20 years (`Attributes.MAX_TTL`).
pub(crate) const TTL_MAX_S: i32 = 20 * 365 * 24 * 60 * 60;

/// The last second at which something may expire (`Cell.MAX_DELETION_TIME` of Cassandra's default storage
/// compatibility).
const EXPIRES_MAX_S: i64 = i32::MAX as i64 - 1;

/// The settings of a USING clause.
#[derive(Clone, Debug, Default)]
pub struct Attributes {
    /// The table's default TTL in seconds. `None` if the table has no default TTL.
    default_ttl_s: Option<i32>,
    timestamp: Option<Term>,
    ttl: Option<Term>,
}

impl Attributes {
    /// Plans the attributes of a modification of the table `modified`. `None` is for a batch.
    pub fn plan(
        ctx: &mut PlanContext<'_>,
        using: &UsingClause,
        modified: Option<&Table>,
    ) -> Result<Attributes, CqlError> {
        let (keyspace, table) =
            modified.map_or(("[batch]", "[batch]"), |table| (&table.keyspace, &table.name));
        let default_ttl_s = modified.map(|table| table.options.default_time_to_live_s);
        let mut prepare = |term: &Option<helenus_cql::ast::Term>, name: &str, ty: CqlType| {
            let spec = ColumnSpec::new(keyspace, table, name, ty);
            term.as_ref()
                .map(|term| Term::prepare(ctx, term, &spec))
                .transpose()
        };
        Ok(Attributes {
            default_ttl_s: default_ttl_s.filter(|ttl| *ttl > 0),
            timestamp: prepare(&using.timestamp, "[timestamp]", CqlType::BIGINT)?,
            ttl: prepare(&using.ttl, "[ttl]", CqlType::INT)?,
        })
    }

    pub fn has_timestamp(&self) -> bool {
        self.timestamp.is_some()
    }

    /// Returns true if the timestamp comes with each request.
    pub fn has_timestamp_marker(&self) -> bool {
        self.timestamp.as_ref().is_some_and(Term::has_markers)
    }

    pub fn has_ttl(&self) -> bool {
        self.ttl.is_some()
    }

    /// Returns the timestamp. `None` if the client or the server chooses it.
    pub fn timestamp_us(&self, eval: &EvalContext<'_>) -> Result<Option<i64>, CqlError> {
        let Some(term) = &self.timestamp else {
            return Ok(None);
        };
        let bytes = match term.bind(eval)? {
            BoundValue::Set(bytes) => bytes,
            BoundValue::Null => return Err(CqlError::invalid("Invalid null value of timestamp")),
            BoundValue::Unset => return Ok(None),
        };
        let timestamp_us = bytes
            .as_ref()
            .try_into()
            .map(i64::from_be_bytes)
            .map_err(|_| CqlError::invalid("Invalid timestamp value"))?;
        check_timestamp(timestamp_us)?;
        Ok(Some(timestamp_us))
    }

    /// Returns the TTL as given, or else the table's default. `None` if there is no TTL, or if 0 was given.
    pub fn ttl_s(&self, eval: &EvalContext<'_>) -> Result<Option<i32>, CqlError> {
        let default = self.default_ttl_s;
        let Some(term) = &self.ttl else { return Ok(default) };
        let bytes = match term.bind(eval)? {
            BoundValue::Set(bytes) => bytes,
            BoundValue::Null => return Ok(None),
            BoundValue::Unset => return Ok(default),
        };
        if bytes.is_empty() {
            return Ok(None);
        }
        let ttl_s = bytes
            .as_ref()
            .try_into()
            .map(i32::from_be_bytes)
            .map_err(|_| CqlError::invalid("Invalid ttl value"))?;
        if ttl_s < 0 {
            return Err(CqlError::invalid(format!(
                "A TTL must be greater or equal to 0, but was {ttl_s}"
            )));
        }
        if ttl_s > TTL_MAX_S {
            return Err(CqlError::invalid(format!(
                "ttl is too large. requested ({ttl_s}) maximum ({TTL_MAX_S})"
            )));
        }
        Ok(Some(ttl_s).filter(|ttl| *ttl > 0))
    }

    /// Returns the expiry of data that is written at `now_s`. Whether the expiry is too late depends on the clock, whatever time the
    /// request gives.
    pub fn expiry(
        &self,
        eval: &EvalContext<'_>,
        table: &Table,
        now_s: i64,
    ) -> Result<Option<Expiry>, CqlError> {
        let Some(ttl_s) = self.ttl_s(eval)? else {
            return Ok(None);
        };
        let clock_s = eval.clock.now_us().div_euclid(1_000_000);
        if clock_s.saturating_add(i64::from(ttl_s)) > EXPIRES_MAX_S {
            let default = if self.ttl.is_none() { "default " } else { "" };
            return Err(CqlError::invalid(format!(
                "Request on table {} with {default}ttl of {ttl_s} seconds exceeds maximum supported expiration date of \
                 2038-01-19T03:14:06+00:00. In order to avoid this use a lower TTL, change the expiration date overflow \
                 policy or upgrade to a version where this limitation is fixed. See CASSANDRA-14092 and CASSANDRA-14227 for more \
                 details.",
                table.full_name()
            )));
        }
        let expires_at_s = now_s.saturating_add(i64::from(ttl_s)).min(EXPIRES_MAX_S);
        Ok(Some(Expiry { ttl_s, expires_at_s }))
    }
}

/// Refuses `i64::MIN`, which stands for no timestamp.
pub fn check_timestamp(timestamp_us: i64) -> Result<(), CqlError> {
    if timestamp_us == i64::MIN {
        return Err(CqlError::invalid(format!(
            "Out of bound timestamp, must be in [{}, {}]",
            i64::MIN + 1,
            i64::MAX
        )));
    }
    Ok(())
}
