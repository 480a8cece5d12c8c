//! Converts the exit of a process to a failure.

use crate::RunFailure;
use crate::guardian::{ExceededLimit, ExitReason};
use crate::output_buffer::StreamName;
use crate::recorder::RunRecorder;

/// The number of bytes at the end of the output that are searched for the last lines.
const LAST_OUTPUT_BYTES: usize = 500;

/// Returns the exit code, if there is one, and the failure, if the process failed. Code 0 is a success, any other code
/// and any signal a failure with the last lines of the output. An end because of an expired lease, or because the
/// guardian died, is a system failure without output. An exceeded limit is a permanent failure that names the setting.
pub(crate) fn exit_code_and_failure(reason: ExitReason, recorder: &RunRecorder) -> (Option<i64>, Option<RunFailure>) {
    match reason {
        ExitReason::Code(0) => (Some(0), None),
        ExitReason::Code(code) => (Some(i64::from(code)), Some(failure_of_code(code, &last_lines(recorder)))),
        ExitReason::Signal(signal) => (None, Some(failure_of_signal(signal, &last_lines(recorder)))),
        ExitReason::LeaseLost => {
            (None, Some(RunFailure::system("the agent was ended because adjutant did not respond")))
        }
        ExitReason::LimitExceeded(limit) => (None, Some(RunFailure::permanent(limit_message(limit)))),
        ExitReason::GuardianDied => (None, Some(RunFailure::system("the agent was ended because its guardian died"))),
    }
}

/// Returns the sentence about an exceeded limit, with the setting that changes it.
fn limit_message(limit: ExceededLimit) -> String {
    let ended = "the agent and all its processes were ended because";
    match limit {
        ExceededLimit::Processes(limit) => {
            format!("{ended} it had more than {limit} processes (limits.processes)")
        }
        ExceededLimit::Memory(bytes) => {
            let megabytes = bytes.div_ceil(1 << 20);
            format!("{ended} it used more than {megabytes} MB of memory (limits.memory_mb)")
        }
        ExceededLimit::CpuSeconds(limit) => {
            format!("{ended} it used more than {limit} s of CPU time (limits.cpu_seconds)")
        }
        ExceededLimit::LifetimeSeconds(limit) => {
            format!("{ended} it ran for more than {limit} s (limits.lifetime_seconds)")
        }
    }
}

/// Returns the failure for an exit code other than 0. The codes of `sysexits.h` and of shells determine its category:
/// transient for 75, permanent for 64, 78, 126 and 127, and otherwise a failure of the agent. The message ends with
/// `output`.
fn failure_of_code(code: i32, output: &str) -> RunFailure {
    let exited = format!("the agent exited with code {code}");
    let message = if output.is_empty() { exited } else { format!("{exited}: {output}") };
    match code {
        // EX_TEMPFAIL
        75 => RunFailure::transient(message),
        // EX_USAGE, EX_CONFIG, and the codes of shells for "not executable" and "not found".
        64 | 78 | 126 | 127 => RunFailure::permanent(message),
        _ => RunFailure::agent(message),
    }
}

/// Returns the failure for a signal: transient for KILL, permanent for XCPU and XFSZ, which mean a reached limit, and
/// otherwise a failure of the agent. TERM, INT, HUP and QUIT usually come from another process and give a system
/// failure. The message names the signal and ends with `output`.
fn failure_of_signal(signal: i32, output: &str) -> RunFailure {
    use nix::sys::signal::Signal;
    let name = Signal::try_from(signal).map_or_else(|_| format!("signal {signal}"), |signal| signal.to_string());
    let message = |cause: &str| {
        let output = if output.is_empty() { String::new() } else { format!(": {output}") };
        format!("the agent was ended by {name}{cause}{output}")
    };
    match Signal::try_from(signal) {
        // The kernel kills processes if memory is short. More memory may be available later.
        Ok(Signal::SIGKILL) => RunFailure::transient(message(", possibly because of a lack of memory")),
        Ok(Signal::SIGXCPU) => RunFailure::permanent(message(": it reached its CPU time limit")),
        Ok(Signal::SIGXFSZ) => RunFailure::permanent(message(": it reached its file size limit")),
        Ok(Signal::SIGTERM | Signal::SIGINT | Signal::SIGHUP | Signal::SIGQUIT) => {
            RunFailure::system(message(" from another process"))
        }
        _ => RunFailure::agent(message("")),
    }
}

/// Returns the last three non-blank lines of the error output, trimmed and redacted, or of the standard output if the
/// error output is blank. Reads at most the last [`LAST_OUTPUT_BYTES`] of each, so the first line may be cut. Lines are
/// joined by ` / `. Empty without output.
fn last_lines(recorder: &RunRecorder) -> String {
    let mut output = recorder.last_output(StreamName::Stderr, LAST_OUTPUT_BYTES);
    if output.trim().is_empty() {
        output = recorder.last_output(StreamName::Stdout, LAST_OUTPUT_BYTES);
    }
    let lines: Vec<_> = output.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(3)..];
    last.join(" / ")
}
