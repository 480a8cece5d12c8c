//! Makes the weights of the intent model of `understand`, the same ones from the same sentences every time.
//!
//! `cargo run --release -p trainer -- --data DIR` reads `intents.dev.jsonl` in DIR and our own `sentences`, learns, says how
//! good the result is on sentences it has not seen, and writes `crates/understand/src/intent/weights.bin`.

mod corpus;
mod learn;
mod report;
mod weights;

use std::path::PathBuf;

use clap::Parser;

use corpus::Corpus;

#[derive(Parser)]
struct Arguments {
    /// The directory of the public utterances
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Where the weights go
    #[arg(long, value_name = "FILE", default_value = "crates/understand/src/intent/weights.bin")]
    out: PathBuf,
    /// Our own sentences
    #[arg(long, value_name = "DIR", default_value = "crates/trainer/sentences")]
    sentences: PathBuf,
    /// More sentences to measure on, as ours are written
    #[arg(long, value_name = "FILE")]
    measure: Option<PathBuf>,
    /// Only say how good the result would be
    #[arg(long)]
    dry_run: bool,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let corpus = Corpus::read(&arguments.data, &arguments.sentences, arguments.measure.as_deref())?;
    let unseen = learn::out_of_fold(&corpus.learnt);
    let temperature = weights::temperature(&corpus.learnt, &unseen);
    let model = learn::learn(corpus.learnt.iter());
    let bytes = weights::pack(&model, temperature);
    report::print(&corpus, &unseen, &model)?;
    if !arguments.dry_run {
        std::fs::write(&arguments.out, &bytes)?;
    }
    Ok(())
}
