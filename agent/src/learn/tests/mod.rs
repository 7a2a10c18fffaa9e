//! What gradients promise: the same function as the plain network, and the slope of the losses.

mod made;
mod numbers;
mod parity;
mod replay;
mod shares;
mod slope;
mod speed;
