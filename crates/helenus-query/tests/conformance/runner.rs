//! Runs a case on an engine and converts each statement's outcome into canonical text.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use helenus_cql::ast::BatchKind;
use helenus_cql::error::{Consistency, CqlError};
use helenus_cql::frame::ProtocolVersion;
use helenus_cql::types::NativeType;
use helenus_query::analysis::BatchStatement;
use helenus_query::engine::{Engine, Prepared};
use helenus_query::request::{BoundValue, BoundValues, ClientState, QueryParameters};
use helenus_query::response::{ColumnSpec, Outcome, Response};

use crate::answer::{Answer, Shown, named, tables};
use crate::case_clock::CaseClock;
use crate::case_file::{Case, Step};
use crate::encoded::{encode, typed};
use crate::text::{expand, one_line, split_top};
use crate::types::Type;

const PAGES_MAX: usize = 500;

/// The outcome of one execution of a statement.
pub struct Executed {
    /// The statement's text in the records.
    pub head: String,
    pub lines: Vec<String>,
    pub line: usize,
    pub is_unordered: bool,
    pub is_code_only: bool,
}

/// A prepared statement and the markers that are reported to the client.
struct PreparedStatement {
    prepared: Arc<Prepared>,
    markers: Vec<ColumnSpec>,
}

/// A running case.
pub struct Execution<'c> {
    case: &'c Case,
    engine: Arc<Engine>,
    clock: &'c CaseClock,
    client: ClientState,
    protocol_version: u8,
    executed: Vec<Executed>,
}

impl<'c> Execution<'c> {
    /// Runs the case. Returns the outcomes of all executions.
    ///
    /// # Errors
    /// The preparation of the case fails, or its cleanup.
    pub async fn run(
        case: &'c Case,
        engine: Arc<Engine>,
        clock: &'c CaseClock,
    ) -> Result<Vec<Executed>, CqlError> {
        let protocol = case.options.get("protocol").map_or("4", String::as_str);
        let mut execution = Execution {
            case,
            engine,
            clock,
            client: ClientState::default(),
            protocol_version: protocol.parse().expect("a version of the protocol"),
            executed: Vec::new(),
        };
        execution.client = execution.log_in(case.login()).await?;
        execution.clear().await?;
        execution
            .must(&format!(
                "CREATE KEYSPACE {} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}",
                case.keyspace
            ))
            .await?;
        execution.use_keyspace().await?;
        for step in &case.steps {
            execution.step(step).await?;
        }
        execution.clear().await?;
        Ok(execution.executed)
    }

    /// Returns a client. It is logged in if `login` is given, as `name/password`.
    async fn log_in(&self, login: Option<&str>) -> Result<ClientState, CqlError> {
        let mut client = ClientState::default();
        if let Some(login) = login.filter(|_| self.engine.authenticates()) {
            let token = format!("\0{}", login.replacen('/', "\0", 1));
            let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
            client.user = Some(self.engine.log_in(address, token.as_bytes()).await?);
        }
        Ok(client)
    }

    /// Drops the objects that the case has created.
    async fn clear(&mut self) -> Result<(), CqlError> {
        for role in self.case.names("roles") {
            self.must(&format!("DROP ROLE IF EXISTS {role}")).await?;
        }
        let own = std::iter::once(self.case.keyspace.clone());
        for keyspace in own.chain(self.case.names("keyspaces")) {
            self.must(&format!("DROP KEYSPACE IF EXISTS {keyspace}")).await?;
        }
        Ok(())
    }

    async fn must(&mut self, text: &str) -> Result<(), CqlError> {
        self.query(text, &QueryParameters::default()).await.map(|_| ())
    }

    async fn use_keyspace(&mut self) -> Result<(), CqlError> {
        if self.case.options.contains_key("nouse") {
            return Ok(());
        }
        self.must(&format!("USE {}", self.case.keyspace)).await
    }

    async fn query(&mut self, text: &str, options: &QueryParameters) -> Result<Outcome, CqlError> {
        self.check_keyspace(options)?;
        let outcome = self.engine.query(&self.client, text, options).await?;
        self.follow_use(&outcome);
        Ok(outcome)
    }

    fn follow_use(&mut self, outcome: &Outcome) {
        if let Response::SetKeyspace(keyspace) = &outcome.response {
            self.client.keyspace = Some(keyspace.clone());
        }
    }

    /// Checks that the keyspace of a request exists, if the request names one.
    fn check_keyspace(&self, options: &QueryParameters) -> Result<(), CqlError> {
        let keyspace = options.keyspace.as_deref();
        keyspace.map_or(Ok(()), |keyspace| self.engine.check_keyspace(keyspace))
    }

    async fn step(&mut self, step: &Step) -> Result<(), CqlError> {
        if let Some(seconds) = step.number("wait") {
            self.clock.advance(Duration::from_secs_f64(seconds));
        }
        if step.has("wire") {
            return Ok(());
        }
        for _ in 0..step.number("times").unwrap_or(1) {
            match step.get("user") {
                Some(user) => self.as_user(step, user).await?,
                None => self.attempt(step).await,
            }
        }
        Ok(())
    }

    /// Runs a step as another user.
    async fn as_user(&mut self, step: &Step, user: &str) -> Result<(), CqlError> {
        match self.log_in(Some(user)).await {
            Ok(client) => {
                let own = std::mem::replace(&mut self.client, client);
                self.use_keyspace().await?;
                self.attempt(step).await;
                self.client = own;
            }
            Err(error) => {
                let lines = self.shown(step, false).error(error).lines;
                self.record(step, step.text.clone(), lines);
            }
        }
        Ok(())
    }

    async fn attempt(&mut self, step: &Step) {
        let options = self.options(step);
        if let Some(kind) = step.get("batch") {
            self.batch(step, kind, &options).await;
        } else if ["params", "named", "prepare"].iter().any(|name| step.has(name)) {
            self.prepared(step, &options).await;
        } else if step.has("values") {
            for text in step.all("values") {
                let values = split_top(&expand(text), ',')
                    .iter()
                    .map(|value| typed(value))
                    .collect();
                self.with_values(step, &options, BoundValues::Positional(values), text)
                    .await;
            }
        } else if step.has("named_values") {
            for text in step.all("named_values") {
                let values = pairs(text).into_iter().map(|(name, value)| {
                    let value = typed(&value);
                    (name, value)
                });
                let values = BoundValues::Named(values.collect());
                self.with_values(step, &options, values, text).await;
            }
        } else if let Some(seconds) = step.number("retry") {
            self.retried(step, &options, Duration::from_secs_f64(seconds))
                .await;
        } else {
            let lines = self.pages_of_text(step, &options).await;
            self.record(step, step.text.clone(), lines);
        }
    }

    fn options(&self, step: &Step) -> QueryParameters {
        QueryParameters {
            consistency: step.get("consistency").map_or(Consistency::One, consistency),
            serial_consistency: step.get("serial").map(consistency),
            page_size: step.number("page_size"),
            timestamp_us: step.number("timestamp"),
            now_s: step.number("now"),
            keyspace: step
                .get("keyspace")
                .map(|name| name.replace("%ks", &self.case.keyspace)),
            version: ProtocolVersion::from_number(self.protocol_version).expect("a version"),
            ..QueryParameters::default()
        }
    }

    fn record(&mut self, step: &Step, head: String, lines: Vec<String>) {
        self.executed.push(Executed {
            head: one_line(&head),
            lines,
            line: step.line,
            is_unordered: step.has("unordered"),
            is_code_only: step.has("code_only"),
        });
    }

    fn shown<'s>(&self, step: &'s Step, skips_metadata: bool) -> Shown<'s> {
        Shown {
            step,
            protocol_version: self.protocol_version,
            skips_metadata,
            is_first_page: true,
        }
    }

    async fn with_values(&mut self, step: &Step, options: &QueryParameters, values: BoundValues, text: &str) {
        let options = QueryParameters {
            values,
            ..options.clone()
        };
        let lines = self.pages_of_text(step, &options).await;
        self.record(step, format!("{} -- {text}", step.text), lines);
    }

    /// Runs a step again until it gives neither an error nor an empty result, or until `patience` is over.
    async fn retried(&mut self, step: &Step, options: &QueryParameters, patience: Duration) {
        let end = Instant::now() + patience;
        let lines = loop {
            let lines = self.pages_of_text(step, options).await;
            if Instant::now() > end || (lines.len() > 1 && !lines[0].starts_with("error")) {
                break lines;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        };
        self.record(step, step.text.clone(), lines);
    }

    async fn pages_of_text(&mut self, step: &Step, options: &QueryParameters) -> Vec<String> {
        let shown = self.shown(step, step.has("skip_metadata"));
        let mut pages = Pages::new(shown, options);
        while let Some(options) = pages.next() {
            let result = self.query(&step.sent, options).await;
            pages.add(result);
        }
        pages.lines
    }

    async fn pages_of_prepared(
        &mut self,
        step: &Step,
        options: QueryParameters,
        prepared: &Prepared,
    ) -> Vec<String> {
        let mut pages = Pages::new(self.shown(step, false), &options);
        while let Some(options) = pages.next() {
            let result = match self.engine.prepared(&prepared.id) {
                Ok(known) => self.engine.execute(&self.client, &known, options).await,
                Err(error) => Err(error),
            };
            if let Ok(outcome) = &result {
                self.follow_use(outcome);
                pages.shown.skips_metadata = step.has("skip_metadata") && is_as_prepared(outcome, prepared);
            }
            pages.add(result);
        }
        pages.lines
    }

    async fn prepare(
        &self,
        text: &str,
        options: &QueryParameters,
    ) -> Result<(PreparedStatement, Vec<String>), CqlError> {
        self.check_keyspace(options)?;
        let keyspace = self.client.keyspace_for(options);
        let (prepared, warnings) = self.engine.prepare(&self.client, keyspace, text).await?;
        let markers = self.engine.current_plan(&prepared)?.markers.specs();
        Ok((PreparedStatement { prepared, markers }, warnings))
    }

    async fn prepared(&mut self, step: &Step, options: &QueryParameters) {
        let (statement, warnings) = match self.prepare(&step.sent, options).await {
            Ok(prepared) => prepared,
            Err(error) => {
                let lines = self.shown(step, false).error(error).lines;
                return self.record(step, format!("PREPARE {}", step.text), lines);
            }
        };
        let lines = self.description(step, &statement, &warnings);
        self.record(step, format!("PREPARE {}", step.text), lines);
        let mut runs = Vec::new();
        for text in step.all("params") {
            let texts = split_top(&expand(text), ',');
            let values = texts
                .iter()
                .enumerate()
                .map(|(index, text)| bound(&statement, index, text));
            runs.push((text, BoundValues::Positional(values.collect())));
        }
        for text in step.all("named") {
            let values = pairs(text).into_iter().map(|(name, value)| {
                let marker = statement
                    .markers
                    .iter()
                    .rev()
                    .find(|marker| *marker.name == *name);
                let ty = marker.map_or(INT, |marker| Type::reported(&marker.ty, false));
                let value = encode(&ty, &value);
                (name, value)
            });
            runs.push((text, BoundValues::Named(values.collect())));
        }
        for (text, values) in runs {
            let options = QueryParameters {
                values,
                ..options.clone()
            };
            let lines = self.pages_of_prepared(step, options, &statement.prepared).await;
            self.record(step, format!("{} -- {text}", step.text), lines);
        }
    }

    /// Returns what PREPARE reports to the client about a statement.
    fn description(&self, step: &Step, statement: &PreparedStatement, warnings: &[String]) -> Vec<String> {
        let PreparedStatement { prepared, markers } = statement;
        let planned = self.engine.current_plan(prepared).ok();
        let indexes = planned
            .as_ref()
            .map_or(&[][..], |planned| &planned.partition_key_indexes);
        // Protocol version 3 does not report these indexes.
        let indexes = if self.protocol_version > 3 { indexes } else { &[] };
        let mut lines = vec![format!(
            "prepared [{}] pk={indexes:?} binds: {}",
            tables(markers),
            named(markers)
        )];
        let result = planned.as_ref().and_then(|planned| planned.result.as_ref());
        if let Some(result) = result.filter(|result| !result.columns.is_empty()) {
            lines.push(format!("result: {}", named(&result.columns)));
        }
        lines.extend(self.shown(step, false).warnings(warnings));
        lines
    }

    /// Sends one BATCH request of the statements between `;;`. A statement's values follow `<-`. A statement with the prefix `@` is
    /// prepared.
    async fn batch(&mut self, step: &Step, kind: &str, options: &QueryParameters) {
        let kind = match kind {
            "logged" => BatchKind::Logged,
            "unlogged" => BatchKind::Unlogged,
            "counter" => BatchKind::Counter,
            kind => panic!("line {}: no kind of batch: {kind}", step.line),
        };
        let result = self.run_batch(step, kind, options).await;
        let lines = self.shown(step, false).answer(result).lines;
        let name = step.get("batch").unwrap_or_default().to_uppercase();
        self.record(step, format!("{name}: {}", step.text), lines);
    }

    async fn run_batch(
        &mut self,
        step: &Step,
        kind: BatchKind,
        options: &QueryParameters,
    ) -> Result<Outcome, CqlError> {
        let mut statements = Vec::new();
        for part in step.sent.split(";;").filter(|_| step.sent != "nothing") {
            let (text, values) = part.split_once("<-").unwrap_or((part, ""));
            let (text, values) = (text.trim(), split_top(values, ','));
            statements.push(match text.strip_prefix('@') {
                None => {
                    let values = values.iter().map(|value| typed(value)).collect();
                    BatchStatement::Text(text.to_owned(), values)
                }
                Some(text) => {
                    let (statement, _) = self.prepare(text, options).await?;
                    let values = values
                        .iter()
                        .enumerate()
                        .map(|(index, text)| bound(&statement, index, text));
                    let values = values.collect();
                    BatchStatement::Prepared(statement.prepared, values)
                }
            });
        }
        self.check_keyspace(options)?;
        self.engine.batch(&self.client, kind, &statements, options).await
    }
}

const INT: Type = Type::Native(NativeType::Int);

/// Returns the consistency level of that name.
fn consistency(name: &str) -> Consistency {
    (0..=11)
        .filter_map(Consistency::from_code)
        .find(|level| level.to_string() == name)
        .unwrap_or_else(|| panic!("no consistency level: {name}"))
}

/// Parses `name=value, name=value`.
fn pairs(text: &str) -> Vec<(String, String)> {
    let parts = split_top(&expand(text), ',');
    let pairs = parts
        .iter()
        .map(|part| part.split_once('=').unwrap_or_else(|| panic!("no name: {part}")));
    pairs
        .map(|(name, value)| (name.trim().to_owned(), value.to_owned()))
        .collect()
}

/// Encodes a value in the marker's type, or in the type that the text names, as in `as(text; 'x')`.
fn bound(statement: &PreparedStatement, index: usize, text: &str) -> BoundValue {
    let named = text
        .strip_prefix("as(")
        .and_then(|rest| rest.strip_suffix(')'))
        .and_then(|rest| rest.split_once("; "));
    if let Some((ty, value)) = named {
        return encode(&Type::parse(ty), value);
    }
    let marker = statement.markers.get(index);
    let ty = marker.map_or(INT, |marker| Type::reported(&marker.ty, false));
    encode(&ty, text)
}

/// Returns true if the answer's columns are those that were reported at PREPARE.
fn is_as_prepared(outcome: &Outcome, prepared: &Prepared) -> bool {
    match &outcome.response {
        Response::Rows(rows) => {
            !prepared.first_result.columns.is_empty() && prepared.first_result.id() == rows.metadata.id()
        }
        _ => false,
    }
}

/// All pages of an answer, as lines.
struct Pages<'s> {
    shown: Shown<'s>,
    options: QueryParameters,
    lines: Vec<String>,
    count: usize,
    is_over: bool,
}

impl<'s> Pages<'s> {
    fn new(shown: Shown<'s>, options: &QueryParameters) -> Pages<'s> {
        Pages {
            shown,
            options: options.clone(),
            lines: Vec::new(),
            count: 0,
            is_over: false,
        }
    }

    /// Returns the options of the request for the next page. `None` if there is none.
    fn next(&mut self) -> Option<&QueryParameters> {
        if self.count > PAGES_MAX && !self.is_over {
            self.lines.push("too many pages".to_owned());
            self.is_over = true;
        }
        (!self.is_over).then_some(&self.options)
    }

    fn add(&mut self, result: Result<Outcome, CqlError>) {
        let answer = self.shown.answer(result);
        self.follow(answer.paging_state.clone());
        if self.count == 1 {
            self.lines = answer.lines;
        } else if !is_empty_end(&answer) {
            self.lines.push("-- more".to_owned());
            self.lines.extend(answer.lines);
        }
        self.shown.is_first_page = false;
    }

    fn follow(&mut self, paging_state: Option<Bytes>) {
        self.count += 1;
        self.is_over = paging_state.is_none();
        self.options.paging_state = paging_state;
    }
}

/// Returns true if the page is empty and the last. A server may or may not send one after a full page.
fn is_empty_end(answer: &Answer) -> bool {
    !answer.is_error && answer.paging_state.is_none() && answer.row_count == 0
}
