//! Destination of results: the terminal, a pager, or the file of CAPTURE.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::process::{Child, Command, Stdio};

/// Pager if PAGER is not set. It leaves short results on the screen, and does not wrap rows.
const DEFAULT_PAGER: &str = "less -S -R -F -X";

/// Destination of statements' results.
#[derive(Default)]
pub struct Output {
    capture: Option<(String, File)>,
}

impl Output {
    /// Appends later results to a file.
    pub fn capture(&mut self, path: &str) -> io::Result<()> {
        let file = File::options().create(true).append(true).open(path)?;
        self.capture = Some((path.to_owned(), file));
        Ok(())
    }

    pub fn stop_capture(&mut self) {
        self.capture = None;
    }

    /// Returns the file of CAPTURE. `None` if results go to the standard output.
    pub fn captured_path(&self) -> Option<&str> {
        self.capture.as_ref().map(|(path, _)| path.as_str())
    }

    /// Returns true if a person reads the results and can answer.
    pub fn is_interactive(&self) -> bool {
        self.capture.is_none() && io::stdin().is_terminal() && io::stdout().is_terminal()
    }

    /// Returns a writer for the results of one statement, without a pager.
    pub fn writer(&self) -> io::Result<Box<dyn Write>> {
        Ok(match &self.capture {
            Some((_, file)) => Box::new(io::BufWriter::new(file.try_clone()?)),
            None => Box::new(io::BufWriter::new(io::stdout())),
        })
    }
}

/// Returns the numbers of rows and columns of the terminal. `None` if the output is not a terminal.
pub fn screen_size() -> Option<(usize, usize)> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    (size.ws_row > 0 && size.ws_col > 0).then(|| (size.ws_row.into(), size.ws_col.into()))
}

/// Returns true if the text has more or longer lines than the screen.
pub fn exceeds_screen(text: &[u8]) -> bool {
    let Some((rows, columns)) = screen_size() else {
        return false;
    };
    let text = String::from_utf8_lossy(text);
    // One line is needed for the prompt.
    text.lines().count() + 1 > rows || text.lines().any(|line| line.chars().count() > columns)
}

/// A pager that reads the results from its standard input.
pub struct Pager {
    child: Child,
}

impl Pager {
    /// Starts the program in PAGER, or `less` if it is not set. `None` if PAGER is empty or the program does not start.
    pub fn start() -> Option<Pager> {
        let command = match std::env::var("PAGER") {
            Ok(command) => command,
            Err(_) => DEFAULT_PAGER.to_owned(),
        };
        let mut words = command.split_whitespace();
        let program = words.next()?;
        let child = Command::new(program).args(words).stdin(Stdio::piped()).spawn();
        child.ok().map(|child| Pager { child })
    }

    /// Waits until the user closes the pager.
    pub fn wait(mut self) -> io::Result<()> {
        drop(self.child.stdin.take());
        self.child.wait().map(drop)
    }
}

impl Write for Pager {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.child.stdin {
            Some(stdin) => stdin.write(bytes),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
