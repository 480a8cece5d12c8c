//! E-mail, sent to a minimal SMTP server.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use notify::{ChannelTransport, EmailTransport, SmtpServer};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::{Bench, until};

/// Accepts mail, or answers RCPT with `refusal`.
#[derive(Clone, Default)]
struct Sink {
    mails: Arc<Mutex<Vec<String>>>,
    commands: Arc<Mutex<Vec<String>>>,
    refusal: Arc<Mutex<Option<&'static str>>>,
}

impl Sink {
    async fn start(&self) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let sink = self.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(sink.clone().serve(stream));
            }
        });
        port
    }

    async fn serve(self, stream: TcpStream) {
        let (reader, mut writer) = stream.into_split();
        let mut lines = BufReader::new(reader).lines();
        writer.write_all(b"220 sink ESMTP\r\n").await.unwrap();
        while let Ok(Some(line)) = lines.next_line().await {
            self.commands.lock().unwrap().push(line.clone());
            let refusal = *self.refusal.lock().unwrap();
            let answer = match line.split(' ').next().unwrap_or_default() {
                "EHLO" => "250-sink\r\n250 AUTH PLAIN",
                "AUTH" => "235 welcome",
                "RCPT" => refusal.unwrap_or("250 fine"),
                "DATA" => {
                    writer.write_all(b"354 go on\r\n").await.unwrap();
                    let mut mail = String::new();
                    while let Ok(Some(line)) = lines.next_line().await {
                        if line == "." {
                            break;
                        }
                        mail.push_str(&format!("{line}\n"));
                    }
                    self.mails.lock().unwrap().push(mail);
                    "250 taken"
                }
                "QUIT" => "221 bye",
                _ => "250 fine",
            };
            if writer.write_all(format!("{answer}\r\n").as_bytes()).await.is_err() {
                break;
            }
        }
    }
}

fn mail(port: u16, password: Option<&str>) -> ChannelTransport {
    let url = format!("smtp://127.0.0.1:{port}");
    let password = password.map(Into::into);
    let user = password.is_some().then(|| "me".to_owned());
    let smtp = SmtpServer::new(&url, user, password.as_ref(), "Adjutant <adjutant@mail.example>").unwrap();
    ChannelTransport::Email(
        EmailTransport::new(smtp, &["alice@mail.example".to_owned(), "Bob <bob@mail.example>".to_owned()]).unwrap(),
    )
}

#[tokio::test]
async fn an_email_is_sent() {
    // TASK-4
    let bench = Bench::sqlite().await;
    let sink = Sink::default();
    bench.set_channels([("mail", mail(sink.start().await, Some("geheim")))]);
    bench.run();
    bench.notify("Reminder: Zähne").await;
    until("the delivery succeeded", async || bench.counts("mail").delivered == 1).await;
    let mail = sink.mails.lock().unwrap()[0].clone();
    for expected in [
        "From: Adjutant <adjutant@mail.example>",
        "To: alice@mail.example, Bob <bob@mail.example>",
        "Auto-Submitted: auto-generated",
        "Message-ID: <",
        "X-Adjutant-Delivery: ",
        "\ndetails\n",
        "Date: Sat, 10 Jan 2026 12:00:00 +0000",
    ] {
        assert!(mail.contains(expected), "{expected} in {mail}");
    }
    assert!(mail.contains("Subject: ") && !mail.contains("Zähne"), "{mail}");
    let commands = sink.commands.lock().unwrap().join("\n");
    assert!(commands.contains("AUTH PLAIN") && commands.contains("RCPT TO:<bob@mail.example>"), "{commands}");
}

#[tokio::test]
async fn transient_smtp_errors_are_retried_and_permanent_ones_are_not() {
    let bench = Bench::sqlite().await;
    let sink = Sink::default();
    bench.set_channels([("mail", mail(sink.start().await, None))]);
    *sink.refusal.lock().unwrap() = Some("450 later");
    bench.run();
    bench.notify("x").await;
    until("the attempt failed", async || bench.counts("mail").failed == 1).await;
    *sink.refusal.lock().unwrap() = None;
    until("the failure is recorded", async || bench.backlog("mail").await == (1, 0)).await;
    bench.advance(Duration::from_secs(1));
    until("the delivery succeeded", async || bench.counts("mail").delivered == 1).await;
    *sink.refusal.lock().unwrap() = Some("550 no such user");
    bench.notify("y").await;
    until("the delivery is given up", async || bench.backlog("mail").await == (0, 1)).await;
}

#[test]
fn invalid_settings_name_their_field() {
    let smtp = |url, from| SmtpServer::new(url, None, None, from).map(drop).map_err(|(field, _)| field);
    assert_eq!(smtp("smtps://mail.example", "me"), Err("from"));
    assert_eq!(smtp("http://mail.example", "me@mail.example"), Err("url"));
    assert_eq!(smtp("", "me@mail.example"), Err("url"));
    let good = SmtpServer::new("smtps://mail.example", None, None, "me@mail.example").unwrap();
    assert!(EmailTransport::new(good.clone(), &[]).is_err());
    assert!(EmailTransport::new(good, &["invalid".to_owned()]).is_err());
}
