//! The wire: lines of JSON-RPC between a client's pipe and rmcp.
//!
//! rmcp speaks both generations of MCP, and is silent about much that a client can get wrong: a
//! line that is no JSON, an id that it cannot read, a notification before the handshake. Every line
//! is therefore looked at here first (`wire/line.rs`); what rmcp can serve goes on to it, and
//! everything else is answered here, under the id it came with. A notification and an answer are
//! never answered, so that two programs that misunderstand each other do not talk for ever.

pub(crate) mod line;

use std::collections::VecDeque;
use std::io;

use nexus_contract::catalog::Set;
use nexus_contract::limits;
use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorCode, GetMeta as _, JsonRpcMessage, ProtocolVersion,
    ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::mpsc;

use line::Read;

/// Bytes of one line: more than a node takes as a call's body, so that it is the node that says
/// what is too large. A longer line is not kept, and refused.
const LINE_BYTES_MAX: usize = limits::CALL_BYTES_MAX + 2 * 1024 * 1024;
/// Lines that wait to be written; whoever makes one more waits, and so does the client's input.
const LINES_WAITING_MAX: usize = 64;

/// Makes the transport for rmcp, and the part that writes what rmcp and the transport say.
pub(crate) fn open<R, W>(input: R, output: W, set: Set) -> (Wire<R>, Output<W>)
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let (lines, waiting) = mpsc::channel(LINES_WAITING_MAX);
    let wire = Wire {
        input: BufReader::new(input),
        line: Vec::new(),
        skipping: false,
        ended: false,
        answers: VecDeque::new(),
        begun: false,
        set,
        output: Some(lines),
    };
    (wire, Output { waiting, output })
}

/// The transport: rmcp reads messages from it and gives it answers.
#[derive(Debug)]
pub(crate) struct Wire<R> {
    input: BufReader<R>,
    /// What has been read of the present line. rmcp drops `receive` whenever it has something to
    /// send, so nothing that was read may be kept in the future alone.
    line: Vec<u8>,
    /// The present line is too long: the rest of it is read and dropped.
    skipping: bool,
    /// The input has ended.
    ended: bool,
    /// Answers of this side that are still to be handed to the output.
    answers: VecDeque<Value>,
    /// The client has chosen a generation of the protocol, by `initialize` or by a request that
    /// carries all it needs.
    begun: bool,
    /// The tools that messages name.
    set: Set,
    output: Option<mpsc::Sender<Vec<u8>>>,
}

/// What writes; it ends when nobody can give it lines any more.
#[derive(Debug)]
pub(crate) struct Output<W> {
    waiting: mpsc::Receiver<Vec<u8>>,
    output: W,
}

impl<W: AsyncWrite + Unpin> Output<W> {
    /// Writes line after line, each as a whole.
    ///
    /// # Errors
    /// When the client takes no more.
    pub(crate) async fn run(mut self) -> io::Result<()> {
        while let Some(line) = self.waiting.recv().await {
            self.output.write_all(&line).await?;
            if self.waiting.is_empty() {
                self.output.flush().await?;
            }
        }
        self.output.shutdown().await
    }
}

impl<R: AsyncRead + Unpin> Wire<R> {
    /// Reads one line into `self.line`; `false` at the end of the input. A line over the limit
    /// leaves an answer instead.
    async fn read_line(&mut self) -> io::Result<bool> {
        loop {
            let found = self.input.fill_buf().await?;
            let end = found.iter().position(|byte| *byte == b'\n');
            let part = found.get(..end.unwrap_or(found.len())).unwrap_or_default();
            let is_last = found.is_empty();
            let is_over = self.line.len().saturating_add(part.len()) > LINE_BYTES_MAX;
            if is_over && !self.skipping {
                self.skipping = true;
                self.line.clear();
                let most = LINE_BYTES_MAX;
                let text = format!("line is over {most} bytes: send less in one request");
                self.answers.push_back(line::error(
                    &Value::Null,
                    ErrorCode::INVALID_REQUEST,
                    &text,
                ));
            } else if !self.skipping {
                self.line.extend_from_slice(part);
            }
            let used = part.len().saturating_add(usize::from(end.is_some()));
            self.input.consume(used);
            if end.is_some() || is_last {
                self.skipping = false;
                self.ended = is_last;
                return Ok(!is_last || !self.line.is_empty());
            }
        }
    }

    /// Hands over what this side has to say; `false` when nobody takes it any more.
    async fn say(&mut self) -> bool {
        let Some(output) = &self.output else { return false };
        while !self.answers.is_empty() {
            // The place is taken before the answer is: whoever drops this future loses nothing.
            let Ok(place) = output.reserve().await else { return false };
            if let Some(answer) = self.answers.pop_front() {
                place.send(whole_line(answer.to_string().into_bytes()));
            }
        }
        true
    }

    /// Lets a message go on to rmcp, which ends a client's session over what comes too early.
    fn admit(&mut self, message: ClientJsonRpcMessage) -> Option<ClientJsonRpcMessage> {
        if self.begun {
            return Some(message);
        }
        let JsonRpcMessage::Request(asked) = &message else {
            tracing::debug!("a notification or an answer before the handshake is left out");
            return None;
        };
        let request = &asked.request;
        if matches!(request, ClientRequest::InitializeRequest(_)) {
            self.begun = true;
            return Some(message);
        }
        if matches!(request, ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_)) {
            return Some(message);
        }
        let meta = request.get_meta();
        if !meta.missing_required_keys(&ProtocolVersion::V_2026_07_28).is_empty() {
            let text = line::too_early(request.method());
            let id = json!(asked.id);
            self.answers.push_back(line::error(&id, ErrorCode::INVALID_PARAMS, &text));
            return None;
        }
        // One of another version is refused, and the next may still begin.
        let version = meta.protocol_version();
        self.begun = version.is_some_and(|it| ProtocolVersion::KNOWN_VERSIONS.contains(&it));
        Some(message)
    }
}

impl<R: AsyncRead + Unpin + Send> Transport<RoleServer> for Wire<R> {
    type Error = io::Error;

    fn send(
        &mut self,
        mut item: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        if let JsonRpcMessage::Error(refused) = &mut item
            && refused.error.code == ErrorCode::METHOD_NOT_FOUND
        {
            // rmcp gives the method's name alone.
            refused.error.message = line::not_served(&refused.error.message).into();
        }
        let output = self.output.clone();
        async move {
            let text = serde_json::to_vec(&item)?;
            let gone = || io::Error::new(io::ErrorKind::BrokenPipe, "the client's pipe is closed");
            let output = output.ok_or_else(gone)?;
            output.send(whole_line(text)).await.map_err(|_closed| gone())
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if !self.say().await || self.ended {
                return None;
            }
            match self.read_line().await {
                Ok(true) => {}
                Ok(false) => continue,
                Err(error) => {
                    tracing::error!(%error, "standard input cannot be read");
                    return None;
                }
            }
            let read = line::read(&self.line, self.set, false);
            self.line.clear();
            match read {
                Read::Message(message) => {
                    if let Some(message) = self.admit(*message) {
                        return Some(message);
                    }
                }
                Read::Answers(answers) => self.answers.extend(answers),
            }
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.output = None;
        Ok(())
    }
}

fn whole_line(mut text: Vec<u8>) -> Vec<u8> {
    text.push(b'\n');
    text
}

#[cfg(test)]
mod tests;
