//! Corrects stored times after the clock was ahead. Work that was planned meanwhile would wait until the wrong time comes
//! again. The scheduler corrects schedules. Notifications that were sent, and queue timeouts that expired meanwhile, stay.

use jiff::{SignedDuration, Timestamp};

use crate::conn::{Conn, args};
use crate::{Result, due, reminders};

/// The clocks of nodes may differ by this.
const TOLERANCE: SignedDuration = SignedDuration::from_mins(1);
/// Longer than the lease of a turn, the claim of a delivery and the delay between two attempts.
const LONGEST_WAIT: SignedDuration = SignedDuration::from_hours(2);

/// The number of corrected rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockCorrections {
    pub executions: u64,
    pub reminders: u64,
    pub deliveries: u64,
    /// Locks of conversations.
    pub turns: u64,
}

impl ClockCorrections {
    /// Returns true if no row was corrected.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Moves times that are further ahead than `now` allows:
/// - Queued executions and deliveries from the future can start now. A delivery whose claim or delay is too long, too.
/// - A repeating reminder fires at the first repetition after `now`. So does the notification of a recurring task.
/// - Locks of conversations from the future are removed.
///
/// Returns the number of corrected rows.
pub async fn correct_times(conn: &mut Conn, now: Timestamp) -> Result<ClockCorrections> {
    let ahead = now + TOLERANCE;
    let too_late = now + LONGEST_WAIT;
    let sql = "UPDATE executions SET run_at = $1, wait_until = $1 + (wait_until - run_at) \
               WHERE state = 'idle' AND run_at > $2 AND changed_at > $2";
    let executions = conn.run((sql, args![now, ahead])).await?;
    let sql = "UPDATE reminders SET next_at = remind_at + repeat_interval_minutes * 60000000 * \
               (1 + CASE WHEN remind_at > $1 THEN 0 ELSE ($1 - remind_at) / (repeat_interval_minutes * 60000000) END) \
               WHERE status = 'scheduled' AND fired_count > 0 AND repeat_interval_minutes > 0 \
               AND snoozed_until IS NULL AND next_at > $1 + repeat_interval_minutes * 60000000 \
               AND next_at > remind_at + repeat_interval_minutes * 60000000";
    let reminders = conn.run((sql, args![now])).await? + reminders::correct_times(conn, now, ahead).await?;
    due::correct_times(conn, now, ahead).await?;
    // Also those that have ended, because the rate of a channel counts them.
    let sql = "UPDATE deliveries SET created_at = $1, next_at = $1, not_before = $1 WHERE created_at > $2";
    let created_ahead = conn.run((sql, args![now, ahead])).await?;
    let sql = "UPDATE deliveries SET next_at = CASE WHEN not_before > $1 THEN not_before ELSE $1 END \
               WHERE ended_at IS NULL AND next_at > $2 AND next_at > not_before + ($2 - $1)";
    let delayed = conn.run((sql, args![now, too_late])).await?;
    let turns = conn.run(("DELETE FROM turns WHERE expires_at > $1", args![too_late])).await?;
    Ok(ClockCorrections { executions, reminders, deliveries: created_ahead + delayed, turns })
}
