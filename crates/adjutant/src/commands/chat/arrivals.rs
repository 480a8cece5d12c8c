//! Prints notifications above an idle prompt as they arrive. Only with a server: without one, a waiting prompt must not hold
//! the data directory.

use api::notifications::Notification;
use rustyline::{DefaultEditor, ExternalPrinter};

use crate::cli::GlobalOptions;
use crate::client::Client;
use crate::commands::notifications;
use crate::commands::watch::EventFollower;

/// Starts a task that prints new notifications until the process ends or the server cannot be reached for too long.
/// Returns false if there is no server or the terminal does not support it.
pub(super) async fn print_arrivals(global: &GlobalOptions, editor: &mut DefaultEditor) -> bool {
    let Ok(client) = Client::connect(global).await else { return false };
    if !client.has_server() {
        return false;
    }
    let Ok(printer) = editor.create_external_printer() else { return false };
    tokio::spawn(follow(client, printer));
    true
}

/// Prints each new notification. Ends if the server cannot be reached for too long or refuses the request.
async fn follow(client: Client, mut printer: impl ExternalPrinter + Send) {
    let mut follower = EventFollower::new(&client, format!("{}/stream", notifications::PATH));
    while let Ok(event) = follower.next().await {
        if event.name != "notification" {
            continue;
        }
        let Ok(notification) = event.read::<Notification>() else { continue };
        if printer.print(format!("{}\n", notifications::line(&notification))).is_err() {
            return;
        }
    }
}
