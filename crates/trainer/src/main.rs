//! Trains the intent model of `understand`. The same sentences always produce the same weights.
//!
//! `cargo run --release -p trainer -- --data DIR` reads `intents.dev.jsonl` in DIR and our own `sentences`. It trains the
//! model, prints its accuracy on unseen sentences, and writes `crates/understand/src/intent/weights.bin`.

mod corpus;
mod learn;
mod report;
mod weights;

use std::path::PathBuf;

use clap::Parser;

use corpus::Corpus;

#[derive(Parser)]
struct TrainerArguments {
    /// The directory with the public utterances
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// The output file for the weights
    #[arg(long, value_name = "FILE", default_value = "crates/understand/src/intent/weights.bin")]
    out: PathBuf,
    /// The directory with our own sentences
    #[arg(long, value_name = "DIR", default_value = "crates/trainer/sentences")]
    sentences: PathBuf,
    /// A table of additional sentences for the evaluation
    #[arg(long, value_name = "FILE")]
    measure: Option<PathBuf>,
    /// Print the accuracy without writing the weights
    #[arg(long)]
    dry_run: bool,
}

fn main() -> anyhow::Result<()> {
    let arguments = TrainerArguments::parse();
    let corpus = Corpus::read(&arguments.data, &arguments.sentences, arguments.measure.as_deref())?;
    let unseen = learn::cross_validate(&corpus.training);
    let temperature = weights::fit_temperature(&corpus.training, &unseen);
    let model = learn::train(corpus.training.iter());
    let bytes = weights::pack(&model, temperature);
    report::print(&corpus, &unseen, &model)?;
    if !arguments.dry_run {
        std::fs::write(&arguments.out, &bytes)?;
    }
    Ok(())
}
