//! `adjutant notifications`: the notifications of the user, and with `-f` new ones as they arrive. Without a server
//! this process fires reminders and delivers notifications while it follows.

use api::notifications::{ListNotifications, Notification, Notifications};

use super::listing::{self, limit_param, local_time, short_id};
use super::watch::EventFollower;
use crate::cli::{GlobalOptions, NotificationsArgs};
use crate::client::Client;
use crate::output;

pub(super) const PATH: &str = "/api/notifications";
/// The number of notifications shown by default.
const DEFAULT_LIMIT: usize = 50;

/// Prints notifications as a table or as ids (`--quiet`), [`DEFAULT_LIMIT`] unless `--limit` is given. Prints a note
/// instead of an empty table. With `--json`, prints one page as the server returns it. With `--follow`, prints new ones
/// instead.
///
/// `--mark-read` marks the printed ones as read; with `--json` before they are printed. Fails if a request fails.
pub(crate) async fn run(global: &GlobalOptions, args: &NotificationsArgs) -> anyhow::Result<()> {
    let client = &Client::connect(global).await?;
    if args.follow {
        return follow(client, args).await;
    }
    let list = ListNotifications {
        unread: args.unread.then_some(true),
        limit: args.limit.map(limit_param),
        cursor: args.cursor.clone(),
    };
    if client.json {
        let answer = listing::page(client, PATH, &list).await?;
        if args.mark_read {
            mark_read(client, &answer.read::<Notifications>()?.notifications).await?;
        }
        return answer.print();
    }
    let found = listing::all_items(client, PATH, list, args.limit.unwrap_or(DEFAULT_LIMIT)).await?;
    if args.quiet {
        found.iter().try_for_each(|notification| output::print_line(&notification.id.to_string()))?;
    } else if found.is_empty() {
        output::note("no notifications");
    } else {
        let rows: Vec<_> = found.iter().map(row).collect();
        output::print_table(&["ID", "", "WHEN", "KIND", "TITLE"], &rows)?;
    }
    if args.mark_read { mark_read(client, &found).await } else { Ok(()) }
}

/// Returns the row of a notification in a table: short id, a mark if it is unread, time, kind and title.
fn row(notification: &Notification) -> Vec<String> {
    vec![
        short_id(notification.id),
        if notification.read_at.is_none() { "●" } else { "" }.to_owned(),
        local_time(notification.created_at),
        notification.kind.to_string(),
        notification.title.clone(),
    ]
}

/// Marks the unread ones of these notifications as read, one request each. Fails at the first request that fails.
async fn mark_read(client: &Client, notifications: &[Notification]) -> anyhow::Result<()> {
    for notification in notifications.iter().filter(|notification| notification.read_at.is_none()) {
        client.post_empty(&format!("{PATH}/{}/read", notification.id)).await?;
    }
    Ok(())
}

/// Prints each new notification, none of the earlier ones: as one line of JSON with `--json`, as an id with `--quiet`,
/// else as in [`line()`]. With `--mark-read`, marks each as read after it is printed. Without a server, prints a note
/// and fires reminders. Reconnects as needed. Never returns `Ok`: a signal or a closed pipe ends the process.
///
/// Fails if the server cannot be reached for too long or refuses a request, or if the output fails.
async fn follow(client: &Client, args: &NotificationsArgs) -> anyhow::Result<()> {
    if !client.has_server() {
        output::note("no server is running; this command sends reminders while it runs");
        client.send_notifications().await?;
    }
    let mut follower = EventFollower::new(client, format!("{PATH}/stream"));
    loop {
        let event = follower.next().await?;
        if event.name != "notification" {
            continue;
        }
        let notification: Notification = event.read()?;
        if client.json {
            output::print_line(&event.data)?;
        } else if args.quiet {
            output::print_line(&notification.id.to_string())?;
        } else {
            output::print_line(&line(&notification))?;
        }
        if args.mark_read {
            mark_read(client, &[notification]).await?;
        }
    }
}

/// Returns the time and title of a notification, with its text below.
pub(super) fn line(notification: &Notification) -> String {
    let mut lines = format!("{}  {}", local_time(notification.created_at), notification.title);
    for line in notification.text.lines() {
        lines.push_str(&format!("\n    {line}"));
    }
    lines
}
