//! What one rank holds, and how it answers.

use std::sync::Arc;

use dynamiccl_gpu::{Buffer, Communicator, Cuda, Device, Event, Load, Nccl, Stream, UniqueId};
use dynamiccl_host::{Driver, Plugin, Seen};
use dynamiccl_spec::driven::CHUNKS_SINCE;
use dynamiccl_spec::{Bytes, ChunkChoice, Collective, Order};

use super::data::{self, Shape};
use super::errors::WorkerError;
use super::heart::Doing;
use crate::hex::{hex, unhex};
use crate::message::{Answer, Look, Opening, Request, Surroundings, Task, Timing, Warmed};

/// Calls before NCCL's table is believed: the first connects ranks.
const LOOKS: u32 = 3;

/// One rank.
pub struct Rank {
    number: u32,
    /// Its GPU.
    gpu: u32,
    doing: Arc<Doing>,
    opened: Option<Opened>,
    joined: Option<Joined>,
}

struct Opened {
    opening: Opening,
    device: Device,
    nccl: Nccl,
    driver: Driver,
    /// Of the load.
    blocks: u32,
}

/// Everything that calls need.
struct Joined {
    doing: Arc<Doing>,
    communicator: Arc<Communicator>,
    stream: Stream,
    send: Buffer,
    receive: Buffer,
    begin: Event,
    end: Event,
    /// Where results are compared.
    scratch: Vec<f32>,
    beside: Option<Beside>,
}

/// The load beside communication.
struct Beside {
    load: Load,
    stream: Stream,
    begin: Event,
    end: Event,
}

impl Rank {
    /// A rank that has nothing yet.
    pub fn new(number: u32, gpu: u32, doing: Arc<Doing>) -> Self {
        Rank { number, gpu, doing, opened: None, joined: None }
    }

    /// Its communicator, once it has one.
    pub fn communicator(&self) -> Option<&Arc<Communicator>> {
        self.joined.as_ref().map(|joined| &joined.communicator)
    }

    /// Does what is asked.
    pub fn answer(&mut self, request: Request) -> Result<Answer, WorkerError> {
        match request {
            Request::Open(opening) => self.open(opening).map(Answer::Opened),
            Request::Name => {
                self.doing.set("ncclGetUniqueId");
                Ok(Answer::Named(hex(self.opened()?.nccl.unique_id()?.bytes())))
            }
            Request::Join(id) => self.join(&id).map(|()| Answer::Joined),
            Request::Look(task) => self.look(&task).map(Answer::Looked),
            Request::Warm(task, orders) => {
                let warmed = orders.into_iter().map(|order| self.warm(&task, order));
                warmed.collect::<Result<_, _>>().map(Answer::Warmed)
            }
            Request::Time(task, orders) => {
                let timed = orders.into_iter().map(|order| self.time(&task, order));
                timed.collect::<Result<_, _>>().map(Answer::Timed)
            }
            Request::End => {
                self.doing.set("ncclCommDestroy");
                self.joined = None;
                Ok(Answer::Ended)
            }
        }
    }

    fn open(&mut self, opening: Opening) -> Result<Surroundings, WorkerError> {
        self.doing.set("cuInit");
        let cuda = Cuda::open()?;
        self.doing.set(format!("cuDevicePrimaryCtxRetain of GPU {}", self.gpu));
        let device = cuda.take(self.gpu)?;
        self.doing.set("opening NCCL");
        let nccl = Nccl::open(opening.nccl.as_deref().map(AsRef::as_ref))?;
        self.doing.set("opening the plugin");
        let of_plugin = |error| WorkerError::Plugin(opening.plugin.clone(), error);
        let driver = Plugin::open(&opening.plugin).and_then(Driver::new).map_err(of_plugin)?;
        let info = device.info()?;
        let surroundings = Surroundings {
            gpu: info.name,
            multiprocessors: info.multiprocessors,
            cuda: cuda.version()?,
            nccl: nccl.version()?,
            host: host(),
            blocks: blocks(opening.beside, info.multiprocessors),
        };
        let blocks = surroundings.blocks;
        self.opened = Some(Opened { opening, device, nccl, driver, blocks });
        Ok(surroundings)
    }

    fn join(&mut self, id: &str) -> Result<(), WorkerError> {
        let id = unhex(id).as_deref().and_then(UniqueId::of).ok_or(WorkerError::Id(id.len()))?;
        self.doing.set("ncclCommInitRank");
        let (number, opened) = (self.number, self.opened()?);
        let Opening { ranks, floats, .. } = opened.opening;
        let device = &opened.device;
        let communicator = Arc::new(opened.nccl.begin(ranks, number, id)?);
        let (mut send, receive) = (device.buffer(floats)?, device.buffer(floats)?);
        let mut scratch: Vec<f32> = (0..floats).map(|at| data::sent(number, at)).collect();
        send.write(&scratch)?;
        scratch.fill(0.0);
        let beside = (opened.blocks > 0).then(|| Beside::new(device, opened.blocks)).transpose()?;
        let (stream, begin, end) = (device.stream()?, device.event()?, device.event()?);
        let doing = Arc::clone(&self.doing);
        self.joined =
            Some(Joined { doing, communicator, stream, send, receive, begin, end, scratch, beside });
        Ok(())
    }

    /// Lets NCCL choose by itself, and says what its table is.
    fn look(&mut self, task: &Task) -> Result<Look, WorkerError> {
        self.order(task, Order::Own, "looking")?;
        let shape = self.shape(task)?;
        let joined = self.joined()?;
        (0..LOOKS).try_for_each(|_| joined.call(shape))?;
        joined.wait()?;
        let Seen { interface, bytes, table, .. } = self.seen(task)?;
        Ok(Look { interface, bytes, table })
    }

    /// Calls an order, compares its result, and calls it again.
    fn warm(&mut self, task: &Task, order: Order) -> Result<Warmed, WorkerError> {
        self.order(task, order, "warming up")?;
        let (number, ranks) = (self.number, self.opened()?.opening.ranks);
        let shape = self.shape(task)?;
        let joined = self.joined()?;
        joined.receive.fill(f32::NAN, shape.received, &joined.stream)?;
        joined.call(shape)?;
        joined.wait()?;
        let got = &mut joined.scratch[..shape.received];
        joined.receive.read(got)?;
        let wrong = shape.wrong(number, ranks, got);
        joined.call(shape)?;
        joined.wait()?;
        let Seen { interface, refused, mut handed, .. } = self.seen(task)?;
        if interface < CHUNKS_SINCE {
            handed.chunk = ChunkChoice::Own;
        }
        Ok(Warmed { carried_out: refused == 0, handed, wrong })
    }

    /// Times an order: a call that nobody times, then as many as the task says between two moments.
    fn time(&mut self, task: &Task, order: Order) -> Result<Timing, WorkerError> {
        self.order(task, order, "timing")?;
        let shape = self.shape(task)?;
        self.joined()?.call(shape)?;
        if task.drained {
            self.meet()?;
            self.order(task, order, "timing")?;
        }
        let joined = self.joined()?;
        let beside = joined.beside.as_mut().filter(|_| task.load > 0);
        if let Some(beside) = beside {
            joined.doing.goes_on();
            joined.stream.synchronise()?;
            beside.start(task.load)?;
        }
        joined.begin.record(&joined.stream)?;
        (0..task.calls).try_for_each(|_| joined.call(shape))?;
        joined.end.record(&joined.stream)?;
        joined.wait()?;
        let us = joined.begin.micros_until(&joined.end)? / f64::from(task.calls.max(1));
        let beside = joined.beside.as_ref().filter(|_| task.load > 0);
        let load_us = beside.map(Beside::finish).transpose()?;
        Ok(Timing { us, load_us })
    }

    /// Waits, on the GPU, until all ranks have done what was put into their streams.
    fn meet(&mut self) -> Result<(), WorkerError> {
        self.give(Order::Own)?;
        let ranks = self.opened()?.opening.ranks;
        let least = Shape::new(Collective::AllReduce, size_of::<f32>() as u64, ranks);
        let joined = self.joined()?;
        least.map_or(Ok(()), |shape| joined.call(shape))
    }

    /// Gives the plugin an order, and says what is being done.
    fn order(&self, task: &Task, order: Order, verb: &str) -> Result<(), WorkerError> {
        let Task { collective, bytes, .. } = task;
        let what = match order {
            Order::Own => "NCCL's own".to_owned(),
            Order::Policy => "the policy".to_owned(),
            Order::Knobs { pair, channels, .. } => {
                format!("{pair} {} channels", channels.requested().unwrap_or(0))
            }
        };
        self.doing.set(format!("{verb} {collective} {}, {what}", Bytes(*bytes)));
        self.give(order)
    }

    fn give(&self, order: Order) -> Result<(), WorkerError> {
        let opened = self.opened()?;
        opened.driver.order(order).map_err(|error| WorkerError::Plugin(opened.opening.plugin.clone(), error))
    }

    fn seen(&self, task: &Task) -> Result<Seen, WorkerError> {
        let opened = self.opened()?;
        let plugin = &opened.opening.plugin;
        let seen = opened.driver.seen().map_err(|error| WorkerError::Plugin(plugin.clone(), error))?;
        seen.ok_or_else(|| WorkerError::NotAsked(plugin.clone(), task.collective.to_string()))
    }

    fn shape(&self, task: &Task) -> Result<Shape, WorkerError> {
        let ranks = self.opened()?.opening.ranks;
        let shape = Shape::new(task.collective, task.bytes, ranks);
        shape.ok_or(WorkerError::OutOfOrder("a collective that NCCL tunes"))
    }

    fn opened(&self) -> Result<&Opened, WorkerError> {
        self.opened.as_ref().ok_or(WorkerError::OutOfOrder("the GPU"))
    }

    fn joined(&mut self) -> Result<&mut Joined, WorkerError> {
        self.joined.as_mut().ok_or(WorkerError::OutOfOrder("the communicator"))
    }
}

impl Joined {
    fn call(&mut self, shape: Shape) -> Result<(), WorkerError> {
        let Joined { communicator, send, receive, stream, .. } = self;
        Ok(communicator.call(shape.call, send, receive, shape.floats, stream)?)
    }

    /// Waits until the GPU is done. Who gets here is further than a rank that hangs in a call, for which it waits.
    fn wait(&self) -> Result<(), WorkerError> {
        self.doing.goes_on();
        Ok(self.stream.synchronise()?)
    }
}

impl Beside {
    fn new(device: &Device, blocks: u32) -> Result<Self, WorkerError> {
        let (begin, end) = (device.event()?, device.event()?);
        Ok(Beside { load: device.load(blocks)?, stream: device.stream()?, begin, end })
    }

    fn start(&mut self, rounds: u32) -> Result<(), WorkerError> {
        self.begin.record(&self.stream)?;
        self.load.start(rounds, &self.stream)?;
        Ok(self.end.record(&self.stream)?)
    }

    /// Microseconds that it took.
    fn finish(&self) -> Result<f64, WorkerError> {
        self.stream.synchronise()?;
        Ok(self.begin.micros_until(&self.end)?)
    }
}

/// What NCCL tells hosts apart by: what it was told, else the machine's name and when it was started.
fn host() -> String {
    let read = |file: &str| std::fs::read_to_string(format!("/proc/sys/kernel/{file}")).unwrap_or_default();
    std::env::var("NCCL_HOSTID").unwrap_or_else(|_| read("hostname") + &read("random/boot_id"))
}

/// Blocks that fill so many thousandths of the multiprocessors, and at least one.
fn blocks(thousandths: u32, multiprocessors: u32) -> u32 {
    match thousandths {
        0 => 0,
        _ => ((thousandths * multiprocessors + 500) / 1000).max(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_fills_its_share() {
        assert_eq!([0, 1, 62, 500, 1000].map(|share| blocks(share, 132)), [0, 1, 8, 66, 132]);
    }
}
