//! A command-line agent that does one thing, and mostly the wrong one: hangs, runs away, burns time, takes memory, floods,
//! crashes, asks. What it shall do is in its arguments, or with `obey` in its input. It knows nothing of adjutant.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a double of somebody else's program")]

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        // Starts one that has left it, and hangs.
        ["runaway", file] => {
            refuse_to_end();
            leave(&["stubborn", file], true).wait().unwrap();
        }
        // Leaves one behind whose parent ends before it.
        ["daemon", file] => {
            leave(&["between", file], true).wait().unwrap();
            wait_for(file);
        }
        // The same, but without anything in its environment.
        ["hidden-daemon", file] => {
            leave(&["between", file], false).wait().unwrap();
            wait_for(file);
        }
        ["hidden-runaway", file] => {
            refuse_to_end();
            leave(&["between", file], false).wait().unwrap();
            std::thread::sleep(Duration::from_secs(600));
        }
        ["between", file] => drop(leave(&["stubborn", file], true)),
        ["stubborn", file] => {
            rustix::process::setsid().unwrap();
            be_stubborn(file);
        }
        // Forks faster than one can count.
        ["bomb", file] => {
            fs::write(file, std::process::id().to_string()).unwrap();
            loop {
                let _ = Command::new("/bin/sleep").arg("100").spawn();
            }
        }
        ["burn", ms] => burn(ms),
        ["burn-below", ms] => {
            burn(ms);
            assert!(leave(&["burn", ms], true).wait().unwrap().success());
        }
        // Time that only the one who adopts it can count.
        ["burn-orphan", ms, file] => {
            leave(&["burn-between", ms, file], true).wait().unwrap();
            wait_for(file);
        }
        ["burn-between", ms, file] => drop(leave(&["burn-then-tell", ms, file], true)),
        ["burn-then-tell", ms, file] => {
            burn(ms);
            fs::write(file, "").unwrap();
        }
        ["hog", megabytes] => {
            let memory = vec![1_u8; megabytes.parse::<usize>().unwrap() << 20];
            std::thread::sleep(Duration::from_millis(600));
            assert_eq!(std::hint::black_box(memory).last(), Some(&1));
        }
        ["write", file, megabytes] => {
            let mut out = fs::File::create(file).unwrap();
            for _ in 0..megabytes.parse::<u32>().unwrap() {
                out.write_all(&[7; 1 << 20]).unwrap();
            }
            out.sync_all().unwrap();
        }
        ["obey"] => return obey(None),
        ["obey", lock] => return obey(Some(lock)),
        ref order => return carry_out(order),
    }
    ExitCode::SUCCESS
}

/// Lines of 100 bytes, numbered.
fn flood(lines: u64) {
    let mut out = std::io::BufWriter::with_capacity(1 << 16, std::io::stdout().lock());
    for line in 0..lines {
        writeln!(out, "{line:>11} {:x<87}", "").unwrap();
    }
    out.flush().unwrap();
}

/// Does what its input says, and whatever that is, alone where it shall be.
fn obey(lock: Option<&str>) -> ExitCode {
    let mut order = String::new();
    std::io::stdin().read_to_string(&mut order).unwrap();
    let _lock = lock.map(alone);
    carry_out(&order.split_whitespace().collect::<Vec<_>>())
}

fn carry_out(order: &[&str]) -> ExitCode {
    match *order {
        ["echo", ref words @ ..] => println!("{}", words.join(" ")),
        ["flood", lines] => flood(lines.parse().unwrap()),
        ["hang"] => std::thread::sleep(Duration::from_secs(600)),
        ["ignore-term"] => {
            refuse_to_end();
            loop {
                std::thread::sleep(Duration::from_secs(60));
            }
        }
        // Ends, but what it began does not.
        ["fork-away"] => {
            let mut child = Command::new("/usr/bin/setsid");
            drop(child.args(["/bin/sh", "-c", "trap '' TERM HUP; sleep 600"]).spawn().unwrap());
            println!("left");
        }
        ["crash"] => std::process::abort(),
        ["exit", code] => return ExitCode::from(code.parse::<u8>().unwrap()),
        ["slow", ms] => {
            println!("begun");
            std::thread::sleep(Duration::from_millis(ms.parse().unwrap()));
            println!("done");
        }
        ["bad-json"] => println!("{{\"jsonrpc\": \"2.0\", \"id\": 1, \"result\": "),
        // A question without the end of a line, and then what is answered, if anything is.
        ["ask"] => {
            print!("What now? ");
            std::io::stdout().flush().unwrap();
            let mut answer = String::new();
            if std::io::stdin().read_line(&mut answer).unwrap() > 0 {
                println!("{}", answer.trim());
            }
        }
        // The time at which it is said, in microseconds.
        ["now"] => println!("{}", std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_micros()),
        // The same again and again.
        ["ticks", count, ms] => {
            for _ in 0..count.parse::<u32>().unwrap() {
                println!("{}", std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_micros());
                std::thread::sleep(Duration::from_millis(ms.parse().unwrap()));
            }
        }
        _ => return ExitCode::from(2),
    }
    ExitCode::SUCCESS
}

/// Holds the lock as long as anything of this run lives; two at once leave a note.
fn alone(lock: &str) -> fs::File {
    use rustix::fs::FlockOperation;
    let file = fs::File::create(lock).unwrap();
    if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        let note = format!("{} at {:?}\n", std::process::id(), std::time::SystemTime::UNIX_EPOCH.elapsed());
        let mut notes = fs::File::options().append(true).create(true).open(format!("{lock}.broken")).unwrap();
        notes.write_all(note.as_bytes()).unwrap();
    }
    // Its children hold it too.
    rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap();
    file
}

fn leave(arguments: &[&str], with_environment: bool) -> std::process::Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    if !with_environment {
        command.env_clear();
    }
    command.args(arguments).spawn().unwrap()
}

fn refuse_to_end() {
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false))).unwrap();
    }
}

/// Does not end by being asked. Says who it is once that is so.
fn be_stubborn(file: &str) {
    refuse_to_end();
    let half = format!("{file}.half");
    fs::write(&half, std::process::id().to_string()).unwrap();
    fs::rename(half, file).unwrap();
    loop {
        std::thread::sleep(Duration::from_secs(60));
    }
}

fn wait_for(file: &str) {
    while !Path::new(file).exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Time on a processor, however busy the machine is.
fn burn(ms: &str) {
    let wanted = Duration::from_millis(ms.parse().unwrap());
    let start = Instant::now();
    let mut x = 0_u64;
    loop {
        for i in 0..100_000_u64 {
            x = std::hint::black_box(x.wrapping_mul(31).wrapping_add(i));
        }
        let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        if Duration::new(used.tv_sec as u64, used.tv_nsec as u32) > wanted || start.elapsed() > 20 * wanted {
            return;
        }
    }
}
