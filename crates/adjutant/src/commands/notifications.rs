//! `adjutant notifications`: what the user was told, and with `-f` what is told from now on. Where no server runs, this
//! process fires reminders and delivers while it follows.

use reqwest::Method;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::listing::{self, short, text, when};
use super::watch::Following;
use crate::cli::{Global, Notifications};
use crate::client::Client;
use crate::output;

/// Shown unless more are wanted.
const SHOWN: usize = 50;

pub(crate) async fn run(global: &Global, wanted: &Notifications) -> anyhow::Result<()> {
    let client = Client::connect(global).await?;
    if wanted.follow {
        return follow(&client, global, wanted).await;
    }
    let unread = if wanted.unread { "unread=true" } else { "" };
    if global.json {
        let limit = wanted.limit.map(|limit| format!("&limit={limit}")).unwrap_or_default();
        let cursor = wanted.cursor.as_deref().map(|cursor| format!("&cursor={cursor}")).unwrap_or_default();
        let answer = client.get(&format!("/api/notifications?{unread}{limit}{cursor}")).await?;
        if wanted.mark_read {
            let shown = answer.json()?;
            mark(&client, shown["notifications"].as_array().map(Vec::as_slice).unwrap_or_default()).await?;
        }
        return output::say(&answer.text());
    }
    let limit = wanted.limit.unwrap_or(SHOWN);
    let found = listing::all(&client, "/api/notifications", "notifications", unread, limit).await?;
    if wanted.quiet {
        found.iter().try_for_each(|notification| output::say(text(notification, "id")))?;
    } else if found.is_empty() {
        output::note("no notifications");
    } else {
        let rows: Vec<_> = found.iter().map(row).collect();
        output::table(&["ID", "", "WHEN", "KIND", "TITLE"], &rows)?;
    }
    if wanted.mark_read { mark(&client, &found).await } else { Ok(()) }
}

fn row(notification: &Value) -> Vec<String> {
    vec![
        short(text(notification, "id")).to_owned(),
        if notification["read_at"].is_null() { "●" } else { "" }.to_owned(),
        when(&notification["created_at"]),
        text(notification, "kind").to_owned(),
        text(notification, "title").to_owned(),
    ]
}

async fn mark(client: &Client, notifications: &[Value]) -> anyhow::Result<()> {
    for notification in notifications.iter().filter(|notification| notification["read_at"].is_null()) {
        let path = format!("/api/notifications/{}/read", text(notification, "id"));
        client.send(Method::POST, &path, None).await?;
    }
    Ok(())
}

async fn follow(client: &Client, global: &Global, wanted: &Notifications) -> anyhow::Result<()> {
    let shutdown = CancellationToken::new();
    let _stop = shutdown.clone().drop_guard();
    if let Some(notifier) = client.notifier().cloned() {
        output::note("no server runs: reminders are fired here, as long as this goes on");
        tokio::spawn(async move { notifier.run(&shutdown).await });
    }
    let mut following = Following::at(client, "/api/notifications/stream".to_owned());
    loop {
        let event = following.next().await?;
        if event.name != "notification" {
            continue;
        }
        let notification: Value = serde_json::from_str(&event.data)?;
        if global.json {
            output::say(&event.data)?;
        } else if wanted.quiet {
            output::say(text(&notification, "id"))?;
        } else {
            output::say(&line(&notification))?;
        }
        if wanted.mark_read {
            mark(client, &[notification]).await?;
        }
    }
}

/// A notification for people, its text below its title.
pub(super) fn line(notification: &Value) -> String {
    let mut lines = format!("{}  {}", when(&notification["created_at"]), text(notification, "title"));
    for line in text(notification, "text").lines() {
        lines.push_str(&format!("\n    {line}"));
    }
    lines
}
