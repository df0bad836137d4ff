// Package policy makes up a language model's weights and the updates that reinforcement learning gives them,
// so that sparsecast can be shown and measured without a trainer.
//
// # What it models
//
// The tensors have the names and shapes of a Llama checkpoint in bf16. Weights are normal around zero; their
// spread is about 0.02 and varies lognormally by tensor and, less, by row. Norms lie near one. The truth is kept
// in float32 masters, as mixed-precision trainers do, and every published state is those masters rounded to bf16,
// nearest even.
//
// The masters are moved by Adam (β1 0.9, β2 0.999, ε 1e-8). The gradient of an element is noise around a small
// drift of its own: with drift a quarter of the noise an update is about a third of the learning rate, which is
// what recorded GRPO runs show, and the sign of an element's steps persists as it does there. Both moments start
// where a long run would have them and the masters start between grid points, so the first update looks like the
// hundredth. Together this gives what a codec sees in such runs: 1 to 1.5 % of the elements change at a learning
// rate of 1e-6 and about 3 % at 3e-6, nearly all of them small weights, most by one step of the bf16 grid.
// Embedding rows late in the vocabulary are rare words: many of them are never touched.
//
// # What it does not model
//
// There is no network, loss or reward, and gradients of different elements are independent: rows, columns and
// layers do not move together. No schedule changes the learning rate, nothing decays, and there is no first,
// cold update, in which far more elements change than later. Tails are those of a sum of uniform numbers, so
// no weight is further than six spreads from zero. Numbers about compression taken from it agree with
// recorded runs in the main, but they are no evidence about any particular model.
//
// # Promises
//
// The bytes follow from [Spec] alone: not from the machine, the number of cores or the order of work. Every block
// of elements draws from generators keyed by seed, tensor, block and update; random numbers are sums of integers;
// and no floating-point expression leaves the compiler free to fuse a multiplication with an addition. State t
// does not depend on how many updates follow it. Memory is a few hundred KiB a core, whatever the size.
package policy
