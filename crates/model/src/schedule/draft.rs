//! Drafts of schedules, and patches.

use std::sync::LazyLock;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::{DEFAULT_MISSED_WINDOW, INPUT_KEY, MissedPolicy, OverlapPolicy, ScheduleSettings, TimeSpan};
use crate::due::{DueDate, OUT_OF_RANGE};
use crate::invalid::Checks;
use crate::json::present;
use crate::{Invalid, text};
use redact::{RedactOptions, Redactor};

pub const MAX_NAME: usize = 100;
const MAX_EXPRESSION_CHARS: usize = 200;
/// The maximum size of the parameters as JSON.
const MAX_PARAMETERS_BYTES: usize = 1 << 20;
const MAX_JITTER: TimeSpan = TimeSpan::from_secs(24 * 60 * 60);
const MAX_FAILURES: u32 = 1000;

static SECRETS: LazyLock<Redactor> = LazyLock::new(|| Redactor::new(RedactOptions { secrets: true, emails: false }));

/// A request to create a schedule. It needs exactly one of `when`, `cron_expression`, `every` and `at`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScheduleDraft {
    #[schema(min_length = 1, max_length = 100, examples("tidy"))]
    pub name: Option<String>,
    #[schema(examples("codex"))]
    pub agent_id: Option<String>,
    /// Times in words, which the server replaces by `cron_expression`, `every` or `at`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(examples("every friday at 5pm"))]
    pub when: Option<String>,
    /// 5 or 6 fields, or a shortcut such as `@daily`.
    #[schema(examples("0 17 * * FRI"))]
    pub cron_expression: Option<String>,
    #[schema(examples("1h30m"))]
    pub every: Option<String>,
    /// RFC 3339, or a date and time without offset in the time zone of the schedule, or words such as `tomorrow 9am`.
    pub at: Option<String>,
    /// The time zone of the user by default.
    #[schema(examples("Europe/Berlin"))]
    pub time_zone: Option<String>,
    /// `input` is the input text of the agent. All other keys are parameters of the run.
    #[schema(value_type = Option<Object>)]
    pub input_parameters: Option<Map<String, Value>>,
    /// `skip` by default.
    #[schema(value_type = Option<OverlapPolicy>)]
    pub overlap: Option<String>,
    /// `once` by default.
    #[schema(value_type = Option<MissedPolicy>)]
    pub missed: Option<String>,
    /// `1d` by default.
    pub missed_window: Option<String>,
    pub jitter: Option<String>,
    pub start_at: Option<String>,
    pub end_at: Option<String>,
    #[schema(minimum = 1, maximum = 1000)]
    pub pause_after_failures: Option<u32>,
    /// `true` by default.
    pub enabled: Option<bool>,
}

impl ScheduleDraft {
    /// Returns the settings. Fails with all violations: a missing name or agent, an unknown time zone, a malformed
    /// value, `end_at` before `start_at`, or invalid parameters. Exactly one of `cron_expression`, `every` and `at`
    /// must be given, and `at` without `start_at` and `end_at`. The jitter is at most one day and shorter than `every`.
    /// `pause_after_failures` is 1 to 1000. The default policies are `Skip` for overlaps and `Once` for missed
    /// occurrences. `zone` is the default; without an IANA name, UTC is stored. Does not check the syntax of the cron
    /// expression, the agent, or that `at` is in the future. Ignores `enabled`.
    pub fn check(self, zone: &TimeZone) -> Result<ScheduleSettings, Invalid> {
        let mut checks = Checks::default();
        let name = checks.take(text::required_line("name", &self.name.unwrap_or_default(), MAX_NAME));
        let agent_id = self.agent_id.unwrap_or_default();
        if agent_id.trim().is_empty() {
            checks.fail("agent_id", "required", "must be given");
        }
        let time_zone = self.time_zone.map_or(Ok(zone.clone()), |name| parse_zone(&name));
        let time_zone = checks.take(time_zone).unwrap_or(TimeZone::UTC);
        if self.when.is_some() {
            let message = "must be times in words such as 'every friday at 5pm' or 'tomorrow at 9am' that a schedule can \
                           represent, and not be given together with cron_expression, every or at";
            checks.fail("when", "words", message);
        }
        let timings = [self.cron_expression.is_some(), self.every.is_some(), self.at.is_some()];
        if self.when.is_none() && timings.iter().filter(|given| **given).count() != 1 {
            checks.fail(
                "cron_expression",
                "one_of",
                "must be given unless every or at is given: exactly one of the three is required",
            );
        }
        let cron_expression = self
            .cron_expression
            .and_then(|text| checks.take(text::required_line("cron_expression", &text, MAX_EXPRESSION_CHARS)));
        let every = self.every.and_then(|text| checks.take(TimeSpan::parse("every", &text)));
        let mut time =
            |field: &str, text: Option<String>| text.and_then(|text| checks.take(parse_time(field, &text, &time_zone)));
        let at = time("at", self.at);
        let start_at = time("start_at", self.start_at);
        let end_at = time("end_at", self.end_at);
        if let (Some(start), Some(end)) = (start_at, end_at)
            && end < start
        {
            checks.fail("end_at", "range", "must not be before start_at");
        }
        if at.is_some() && (start_at.is_some() || end_at.is_some()) {
            checks.fail("at", "one_of", "must not be given together with start_at or end_at");
        }
        let overlap = self.overlap.map_or(Ok(OverlapPolicy::Skip), |word| OverlapPolicy::parse("overlap", &word));
        let overlap = checks.take(overlap).unwrap_or(OverlapPolicy::Skip);
        let missed = self.missed.map_or(Ok(MissedPolicy::Once), |word| MissedPolicy::parse("missed", &word));
        let missed = checks.take(missed).unwrap_or(MissedPolicy::Once);
        let window =
            self.missed_window.map_or(Ok(DEFAULT_MISSED_WINDOW), |text| TimeSpan::parse("missed_window", &text));
        let missed_window = checks.take(window).unwrap_or(DEFAULT_MISSED_WINDOW);
        let jitter = self.jitter.and_then(|text| checks.take(TimeSpan::parse("jitter", &text)));
        if jitter.is_some_and(|jitter| jitter > MAX_JITTER) {
            checks.fail("jitter", "range", format!("must be at most {MAX_JITTER}"));
        }
        if let (Some(jitter), Some(every)) = (jitter, every)
            && jitter >= every
        {
            checks.fail("jitter", "range", "must be shorter than every");
        }
        if self.pause_after_failures.is_some_and(|count| !(1..=MAX_FAILURES).contains(&count)) {
            checks.fail("pause_after_failures", "range", format!("must be between 1 and {MAX_FAILURES}"));
        }
        let input_parameters = self.input_parameters.unwrap_or_default();
        check_parameters(&mut checks, &input_parameters);
        let settings = name.map(|name| ScheduleSettings {
            name,
            agent_id,
            cron_expression,
            every,
            at,
            time_zone: time_zone.iana_name().unwrap_or("UTC").to_owned(),
            input_parameters,
            overlap,
            missed,
            missed_window,
            jitter,
            start_at,
            end_at,
            pause_after_failures: self.pause_after_failures,
        });
        checks.finish(settings)
    }
}

/// Returns the draft with exactly these settings.
impl From<ScheduleSettings> for ScheduleDraft {
    /// Returns the draft that [`ScheduleDraft::check`] turns into these settings again. `enabled` is `None`.
    fn from(settings: ScheduleSettings) -> Self {
        Self {
            name: Some(settings.name),
            agent_id: Some(settings.agent_id),
            when: None,
            cron_expression: settings.cron_expression,
            every: settings.every.map(|length| length.to_string()),
            at: settings.at.map(|time| time.to_string()),
            time_zone: Some(settings.time_zone),
            input_parameters: Some(settings.input_parameters),
            overlap: Some(settings.overlap.to_string()),
            missed: Some(settings.missed.to_string()),
            missed_window: Some(settings.missed_window.to_string()),
            jitter: settings.jitter.map(|length| length.to_string()),
            start_at: settings.start_at.map(|time| time.to_string()),
            end_at: settings.end_at.map(|time| time.to_string()),
            pause_after_failures: settings.pause_after_failures,
            enabled: None,
        }
    }
}

/// Changes to a schedule. An absent field is not changed; `null` resets it to its default. A new `cron_expression`,
/// `every` or `at` replaces the current one of the three.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SchedulePatch {
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false, min_length = 1, max_length = 100)]
    pub name: Option<String>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    pub agent_id: Option<String>,
    /// New times in words, which the server replaces by `cron_expression`, `every` or `at`.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    pub when: Option<String>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub cron_expression: Option<Option<String>>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub every: Option<Option<String>>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub at: Option<Option<String>>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String, required = false)]
    pub time_zone: Option<String>,
    /// Replaces all parameters.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object, required = false)]
    pub input_parameters: Option<Map<String, Value>>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<OverlapPolicy>)]
    pub overlap: Option<Option<String>>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<MissedPolicy>)]
    pub missed: Option<Option<String>>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub missed_window: Option<Option<String>>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub jitter: Option<Option<String>>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub start_at: Option<Option<String>>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub end_at: Option<Option<String>>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u32>)]
    pub pause_after_failures: Option<Option<u32>>,
    /// `false` pauses the schedule, `true` resumes it.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = bool, required = false)]
    pub enabled: Option<bool>,
}

impl SchedulePatch {
    /// Returns the draft of the changed settings, which is not validated yet. `null` removes a value, so that its
    /// default applies. A new `cron_expression`, `every` or `at` removes the other two. `enabled` is that of the patch.
    /// Fails if the patch has no field.
    pub fn apply_to(self, settings: ScheduleSettings) -> Result<ScheduleDraft, Invalid> {
        if self == Self::default() {
            return Err(Invalid::one("body", "min_fields", "must have at least one field"));
        }
        let mut draft = ScheduleDraft::from(settings);
        let is_new = |given: &Option<Option<String>>| given.as_ref().is_some_and(Option::is_some);
        if is_new(&self.cron_expression) || is_new(&self.every) || is_new(&self.at) {
            (draft.cron_expression, draft.every, draft.at) = (None, None, None);
        }
        draft.name = self.name.or(draft.name);
        draft.agent_id = self.agent_id.or(draft.agent_id);
        draft.when = self.when;
        draft.cron_expression = self.cron_expression.unwrap_or(draft.cron_expression);
        draft.every = self.every.unwrap_or(draft.every);
        draft.at = self.at.unwrap_or(draft.at);
        draft.time_zone = self.time_zone.or(draft.time_zone);
        draft.input_parameters = self.input_parameters.or(draft.input_parameters);
        draft.overlap = self.overlap.unwrap_or(draft.overlap);
        draft.missed = self.missed.unwrap_or(draft.missed);
        draft.missed_window = self.missed_window.unwrap_or(draft.missed_window);
        draft.jitter = self.jitter.unwrap_or(draft.jitter);
        draft.start_at = self.start_at.unwrap_or(draft.start_at);
        draft.end_at = self.end_at.unwrap_or(draft.end_at);
        draft.pause_after_failures = self.pause_after_failures.unwrap_or(draft.pause_after_failures);
        draft.enabled = self.enabled;
        Ok(draft)
    }
}

/// Returns the time zone with this IANA name. Fails if the name is unknown.
fn parse_zone(name: &str) -> Result<TimeZone, Invalid> {
    let invalid = || Invalid::one("time_zone", "time_zone", "must be a time zone such as Europe/Berlin or UTC");
    let zone = TimeZone::get(name.trim()).map_err(|_| invalid())?;
    if zone.iana_name().is_some() { Ok(zone) } else { Err(invalid()) }
}

/// Parses a time, truncated to the second. A time without offset is in `zone`. Fails if the text has no time of day, or
/// if the time cannot be stored.
fn parse_time(field: &str, text: &str, zone: &TimeZone) -> Result<Timestamp, Invalid> {
    let time = match DueDate::parse(field, text, zone) {
        Ok(due) => due.timestamp(),
        Err(invalid) if invalid.violations.iter().any(|violation| violation.rule == OUT_OF_RANGE) => {
            return Err(invalid);
        }
        Err(_) => None,
    };
    let message = "must be a time such as 2026-01-31T15:00:00+01:00 or words such as 'tomorrow 9am'; without an offset it is in the \
         time zone of the schedule";
    time.ok_or_else(|| Invalid::one(field, "date_time", message))
}

/// Adds a violation if the parameters have more than [`MAX_PARAMETERS_BYTES`] as JSON, or if `input` is not a string.
/// Adds one for each name that is empty or contains `}}`, and for each parameter that contains a secret.
fn check_parameters(checks: &mut Checks, parameters: &Map<String, Value>) {
    let size = serde_json::to_string(parameters).map_or(usize::MAX, |json| json.len());
    if size > MAX_PARAMETERS_BYTES {
        checks.fail(
            "input_parameters",
            "max_length",
            format!("must have at most {MAX_PARAMETERS_BYTES} bytes as JSON"),
        );
    }
    let names = parameters.keys().filter(|name| *name != INPUT_KEY);
    for name in names.filter(|name| name.is_empty() || name.contains("}}")) {
        let message = "must have a name that is not empty and does not contain }}";
        checks.fail(format!("input_parameters.{name}"), "name", message);
    }
    for (name, value) in parameters {
        let mut shown = json!({ name: value });
        SECRETS.json(&mut shown);
        if shown != json!({ name: value }) {
            let message =
                "must not contain a secret, because it is stored unchanged; use the envs of the agent instead";
            checks.fail(format!("input_parameters.{name}"), "secret", message);
        }
    }
    if parameters.get(INPUT_KEY).is_some_and(|input| !input.is_string()) {
        checks.fail("input_parameters.input", "type", "must be a string");
    }
}
