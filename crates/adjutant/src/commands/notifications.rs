//! `adjutant notifications`: the notifications of the user, and with `-f` new ones as they arrive. Without a server this
//! process fires reminders and delivers notifications while it follows.

use api::notifications::{ListNotifications, Notification, Notifications as Page};
use tokio_util::sync::CancellationToken;

use super::listing::{self, saturating, short, when};
use super::watch::Following;
use crate::cli::{Global, Notifications};
use crate::client::Client;
use crate::output;

pub(super) const PATH: &str = "/api/notifications";
/// The number of notifications shown by default.
const SHOWN: usize = 50;

pub(crate) async fn run(global: &Global, wanted: &Notifications) -> anyhow::Result<()> {
    let client = &Client::connect(global).await?;
    if wanted.follow {
        return follow(client, wanted).await;
    }
    let list = ListNotifications {
        unread: wanted.unread.then_some(true),
        limit: wanted.limit.map(saturating),
        cursor: wanted.cursor.clone(),
    };
    if client.json {
        let answer = listing::page(client, PATH, &list).await?;
        if wanted.mark_read {
            mark(client, &answer.read::<Page>()?.notifications).await?;
        }
        return answer.print();
    }
    let found = listing::all(client, PATH, list, wanted.limit.unwrap_or(SHOWN)).await?;
    if wanted.quiet {
        found.iter().try_for_each(|notification| output::say(&notification.id.to_string()))?;
    } else if found.is_empty() {
        output::note("no notifications");
    } else {
        let rows: Vec<_> = found.iter().map(row).collect();
        output::table(&["ID", "", "WHEN", "KIND", "TITLE"], &rows)?;
    }
    if wanted.mark_read { mark(client, &found).await } else { Ok(()) }
}

fn row(notification: &Notification) -> Vec<String> {
    vec![
        short(notification.id),
        if notification.read_at.is_none() { "●" } else { "" }.to_owned(),
        when(notification.created_at),
        notification.kind.to_string(),
        notification.title.clone(),
    ]
}

async fn mark(client: &Client, notifications: &[Notification]) -> anyhow::Result<()> {
    for notification in notifications.iter().filter(|notification| notification.read_at.is_none()) {
        client.post_empty(&format!("{PATH}/{}/read", notification.id)).await?;
    }
    Ok(())
}

async fn follow(client: &Client, wanted: &Notifications) -> anyhow::Result<()> {
    let shutdown = CancellationToken::new();
    let _stop = shutdown.clone().drop_guard();
    if let Some(notifier) = client.notifier().cloned() {
        output::note("no server runs: reminders are fired here, as long as this goes on");
        tokio::spawn(async move { notifier.run(&shutdown).await });
    }
    let mut following = Following::at(client, format!("{PATH}/stream"));
    loop {
        let event = following.next().await?;
        if event.name != "notification" {
            continue;
        }
        let notification: Notification = event.read()?;
        if client.json {
            output::say(&event.data)?;
        } else if wanted.quiet {
            output::say(&notification.id.to_string())?;
        } else {
            output::say(&line(&notification))?;
        }
        if wanted.mark_read {
            mark(client, &[notification]).await?;
        }
    }
}

/// Returns a notification for people, with its text below its title.
pub(super) fn line(notification: &Notification) -> String {
    let mut lines = format!("{}  {}", when(notification.created_at), notification.title);
    for line in notification.text.lines() {
        lines.push_str(&format!("\n    {line}"));
    }
    lines
}
