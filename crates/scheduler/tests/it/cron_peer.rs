//! Compares our occurrences with an independent cron implementation (cronsim from PyPI, which follows Debian's cron). A
//! year of 200 random schedules in twelve time zones is fired by a manual clock. Both must produce the same
//! occurrences.
//!
//! Cronsim does not apply the daylight saving rules to expressions with seconds. For fixed times of such expressions,
//! the hours around a clock change are excluded. Everything else is compared on these days as well.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};
use model::schedule::{DecisionKind, ScheduleDraft};
use scheduler::occurrences::OccurrenceRule;
use serde_json::json;
use store::schedules;

use crate::bench::{Bench, START};

const ZONES: [&str; 12] = [
    "UTC",
    "Europe/Berlin",
    "Europe/London",
    "America/New_York",
    "America/Los_Angeles",
    "America/St_Johns",
    "America/Santiago",
    "Africa/Cairo",
    "Asia/Kolkata",
    "Australia/Lord_Howe",
    "Australia/Sydney",
    "Pacific/Auckland",
];
const SEED: u64 = 20_260_110;

/// Generates random cron expressions.
struct ExpressionGenerator(fastrand::Rng);

impl ExpressionGenerator {
    fn choose<'a>(&mut self, options: &[&'a str]) -> &'a str {
        options[self.0.usize(..options.len())]
    }

    fn number(&mut self, min: u32, max: u32) -> String {
        self.0.u32(min..=max).to_string()
    }

    fn list(&mut self, min: u32, max: u32) -> String {
        let numbers: Vec<_> = (0..self.0.usize(2..4)).map(|_| self.number(min, max)).collect();
        numbers.join(",")
    }

    fn range(&mut self, min: u32, max: u32) -> String {
        let a = self.0.u32(min..=max);
        let b = self.0.u32(min..=max);
        format!("{}-{}", a.min(b), a.max(b))
    }

    fn time(&mut self, max: u32, is_frequent: bool) -> String {
        match self.0.u32(0..if is_frequent { 7 } else { 4 }) {
            0..=1 => self.number(0, max),
            2 => self.list(0, max),
            3 => self.list(0, max.min(3)),
            4 => self.range(0, max),
            5 => format!("*/{}", self.0.u32(2..=max / 2)),
            _ => format!("{}/{}", self.range(0, max), self.0.u32(2..=7)),
        }
    }

    /// Returns an hour field. Hours in which clocks are changed are more frequent.
    fn hour(&mut self, is_frequent: bool) -> String {
        if self.0.bool() { self.number(0, 3) } else { self.time(23, is_frequent) }
    }

    fn day(&mut self) -> String {
        match self.0.u32(0..8) {
            0..=3 => "*".to_owned(),
            4 => self.number(1, 31),
            5 => self.list(1, 28),
            6 => self.choose(&["L", "*/2", "LW", "1-7"]).to_owned(),
            _ => self.range(1, 28),
        }
    }

    fn month(&mut self) -> String {
        match self.0.u32(0..6) {
            0..=2 => "*".to_owned(),
            3 => self.choose(&["MAR", "OCT", "mar,oct", "JAN-JUN", "4", "9-11"]).to_owned(),
            4 => format!("*/{}", self.0.u32(2..=5)),
            _ => self.range(1, 12),
        }
    }

    fn weekday(&mut self) -> String {
        match self.0.u32(0..8) {
            0..=3 => "*".to_owned(),
            4 => self.choose(&["SUN", "sun,sat", "MON-FRI", "7", "0"]).to_owned(),
            5 => format!("{}#{}", self.0.u32(0..=6), self.0.u32(1..=5)),
            6 => format!("{}L", self.0.u32(0..=6)),
            _ => self.range(0, 6),
        }
    }

    fn expression(&mut self, is_frequent: bool) -> String {
        let mut fields =
            vec![self.time(59, is_frequent), self.hour(is_frequent), self.day(), self.month(), self.weekday()];
        if self.0.u32(0..6) == 0 {
            fields.insert(0, self.number(0, 59));
        }
        fields.join(" ")
    }
}

/// Returns the start and the end of the compared year.
fn compared_span() -> (Timestamp, Timestamp) {
    let from: Timestamp = START.parse().unwrap();
    (from, from + SignedDuration::from_hours(365 * 24))
}

fn rule(expression: &str, zone: &str) -> Option<OccurrenceRule> {
    let draft = ScheduleDraft {
        name: Some("n".into()),
        agent_id: Some("many".into()),
        cron_expression: Some(expression.into()),
        time_zone: Some(zone.into()),
        ..ScheduleDraft::default()
    };
    OccurrenceRule::new(&draft.check(&TimeZone::UTC).unwrap(), START.parse().unwrap()).ok()
}

fn our_occurrences(rule: &OccurrenceRule, max: usize) -> Vec<i64> {
    let (from, until) = compared_span();
    let times = std::iter::successors(rule.next_after(from), |last| rule.next_after(*last));
    times.take_while(|time| *time <= until).take(max).map(Timestamp::as_second).collect()
}

/// Returns random expressions with 1 to `max` occurrences in the year.
fn random_schedules(count: usize, is_frequent: bool, max: usize) -> Vec<(String, &'static str)> {
    let mut generator = ExpressionGenerator(fastrand::Rng::with_seed(SEED + u64::from(is_frequent)));
    let mut found: Vec<(String, &str)> = Vec::new();
    while found.len() < count {
        let expression = generator.expression(is_frequent);
        let zone = ZONES[found.len() % ZONES.len()];
        let times = rule(&expression, zone).map_or(0, |rule| our_occurrences(&rule, max + 1).len());
        if (1..=max).contains(&times) {
            found.push((expression, zone));
        }
    }
    found
}

fn peer_occurrences(schedules: &[(String, &str)]) -> Vec<Vec<i64>> {
    let dir = std::env::var("ADJUTANT_TEST_CRON_PEER").unwrap_or_else(|_| {
        panic!(
            "ADJUTANT_TEST_CRON_PEER is not set; run the tests with scripts/check, or run scripts/python-peer \
             cron-peer target/cron-peer and set the variable to the absolute path of target/cron-peer"
        )
    });
    let (from, until) = compared_span();
    let request: Vec<_> = schedules.iter().map(|(expression, zone)| json!([expression, zone])).collect();
    let request = json!({"from": from.as_second(), "until": until.as_second(), "schedules": request});
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/cron-peer/occurrences.py");
    let mut process = Command::new(format!("{dir}/bin/python"))
        .arg(script)
        .env("PYTHONTZPATH", "")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    process.stdin.take().unwrap().write_all(request.to_string().as_bytes()).unwrap();
    let output = process.wait_with_output().unwrap();
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Returns true if cronsim uses different rules for this time, because it is close to a clock change.
fn is_excluded(expression: &str, zone: &str, second: i64) -> bool {
    let fields: Vec<_> = expression.split_whitespace().collect();
    if fields.len() != 6 || fields[..3].iter().any(|field| field.starts_with('*')) {
        return false;
    }
    let time = Timestamp::from_second(second).unwrap();
    let change = TimeZone::get(zone).unwrap().following(time - 3.hours()).next().map(|change| change.timestamp());
    change.is_some_and(|change| change <= time + 3.hours())
}

fn compare(schedules: &[(String, &str)], found: &[Vec<i64>], expected: &[Vec<i64>]) -> usize {
    assert_eq!((schedules.len(), found.len()), (expected.len(), expected.len()));
    let mut compared = 0;
    for (((expression, zone), found), expected) in schedules.iter().zip(found).zip(expected) {
        let comparable = |times: &[i64]| {
            times.iter().copied().filter(|second| !is_excluded(expression, zone, *second)).collect::<Vec<_>>()
        };
        let found = comparable(found);
        let expected = comparable(expected);
        compared += expected.len();
        let readable = |times: Vec<i64>| {
            let zone = TimeZone::get(zone).unwrap();
            let times = times.into_iter().map(|second| Timestamp::from_second(second).unwrap().to_zoned(zone.clone()));
            times.map(|time| time.to_string()).collect::<Vec<_>>()
        };
        let missing: Vec<_> = expected.iter().filter(|time| !found.contains(time)).copied().collect();
        let extra: Vec<_> = found.iter().filter(|time| !expected.contains(time)).copied().collect();
        let missing = readable(missing);
        let extra = readable(extra);
        assert!(missing.is_empty() && extra.is_empty(), "{expression} in {zone}: missing {missing:?}, extra {extra:?}");
        assert_eq!(found, expected, "{expression} in {zone}: in order, each once");
    }
    compared
}

#[tokio::test(flavor = "multi_thread")]
async fn a_year_of_firings_matches_cronsim() {
    // SCHED-1, SCHED-4
    let schedules = random_schedules(200, false, 150);
    let bench = Bench::sqlite().await;
    let mut ids = Vec::new();
    for (expression, zone) in &schedules {
        let fields = json!({"cron_expression": expression, "time_zone": zone, "overlap": "allow"});
        ids.push(bench.create(fields).await.id);
    }
    let (_, until) = compared_span();
    loop {
        let first = schedules::next_due_at(&mut bench.store().reader().await.unwrap()).await.unwrap();
        let Some(first) = first.filter(|first| *first <= until) else { break };
        bench.clock.set(first);
        bench.scheduler.fire_due().await.unwrap();
    }
    let mut found = Vec::new();
    let mut kinds = BTreeMap::<DecisionKind, usize>::new();
    for id in ids {
        let history = bench.history(id).await;
        history.iter().for_each(|decision| *kinds.entry(decision.kind).or_default() += 1);
        assert!(history.iter().all(|decision| decision.due_at == decision.decided_at), "each on time");
        assert_eq!(bench.executions(id).await.len(), history.len());
        found.push(history.iter().map(|decision| decision.due_at.as_second()).collect());
    }
    let compared = compare(&schedules, &found, &peer_occurrences(&schedules));
    assert_eq!(kinds.keys().collect::<Vec<_>>(), [&DecisionKind::Fired]);
    assert!(compared > 5000, "{compared}");
}

#[test]
fn frequent_expressions_match_cronsim() {
    // SCHED-1: computes the occurrences without firing them
    let schedules = random_schedules(200, true, 20_000);
    let found: Vec<_> = schedules.iter().map(|(e, z)| our_occurrences(&rule(e, z).unwrap(), usize::MAX)).collect();
    let compared = compare(&schedules, &found, &peer_occurrences(&schedules));
    assert!(compared > 50_000, "{compared}");
}
