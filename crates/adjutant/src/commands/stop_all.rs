//! `adjutant stop-all` and `adjutant resume-all`.

use api::stop_all::{ResumeSummary, StopRequest, StopSummary};

use crate::cli::GlobalOptions;
use crate::client::Client;
use crate::output;

/// Stops everything and prints the affected work, or with `--json` the response of the server. Asks no question: an
/// emergency stop must not wait. Fails if the server refuses.
pub(crate) async fn stop(global: &GlobalOptions, reason: Option<String>) -> anyhow::Result<()> {
    let answer = Client::connect(global).await?.post("/api/stop-all", &StopRequest { reason }).await?;
    answer.show(|summary: StopSummary| output::print_line(&describe_stop(&summary)))
}

/// Resumes everything and prints the work that continues, or with `--json` the response of the server. Fails if the
/// server refuses.
pub(crate) async fn resume(global: &GlobalOptions) -> anyhow::Result<()> {
    let answer = Client::connect(global).await?.post_empty("/api/resume-all").await?;
    answer.show(|summary: ResumeSummary| match &summary.stop {
        None => output::print_line("Nothing was stopped."),
        Some(_) => {
            let queued = count(summary.queued, "queued run");
            let schedules = count(summary.schedules, "schedule");
            output::print_line(&format!("Resumed. {queued} and {schedules} continue."))
        }
    })
}

/// Returns the sentences about a stop.
fn describe_stop(summary: &StopSummary) -> String {
    let ended = format!("{} and {}", count(summary.executions, "run"), count(summary.sessions, "session"));
    let held = format!("{} and {}", count(summary.queued, "queued run"), count(summary.schedules, "schedule"));
    let verb = if summary.queued + summary.schedules == 1 { "is" } else { "are" };
    format!("Stopped {ended}. {held} {verb} held. `adjutant resume-all` takes that back.")
}

/// Returns a number with its noun.
fn count(number: i64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

#[cfg(test)]
mod tests {
    use api::stop_all::StopState;

    use super::*;

    #[test]
    fn a_stop_is_described_with_its_effects() {
        // SEC-6
        let state = StopState {
            stopped_at: "2026-01-10T12:00:00Z".parse().unwrap(),
            reason: None,
            by: model::UserId::LOCAL,
            resumed_at: None,
        };
        let summary = StopSummary { state, executions: 3, sessions: 1, queued: 4, schedules: 2 };
        let expected = "Stopped 3 runs and 1 session. 4 queued runs and 2 schedules are held. `adjutant resume-all` takes \
                        that back.";
        assert_eq!(describe_stop(&summary), expected);
    }
}
