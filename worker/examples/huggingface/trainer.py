# SPDX-License-Identifier: Apache-2.0
"""Trains a small language model with the Trainer of Hugging Face, in groups of workers.

    covey run --servers 2 --groups 2 --workers 2 -- python3 trainer.py

The model is made from a configuration, and the text from a rule, so that nothing is downloaded.
Compared with a script for one process, the lines with `covey` or `worker` are new. Clipping is
Covey's (max_norm): that of the Trainer would clip each worker's own gradient.
"""

import tempfile

import torch
import transformers

import covey
import covey.torch


class Counting(torch.utils.data.Dataset):
    """Sequences that count in steps of 1 to 7, modulo 32."""

    def __len__(self):
        return 2048

    def __getitem__(self, position):
        tokens = (torch.arange(16) * (1 + position % 7) + position // 7) % 32
        return {"input_ids": tokens, "labels": tokens}


def main():
    torch.set_num_threads(1)
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=32, n_positions=16, n_embd=32, n_layer=2, n_head=2))
    with covey.join() as worker, tempfile.TemporaryDirectory() as folder:
        mine = torch.utils.data.Subset(Counting(), range(worker.rank, 2048, worker.size))
        optimizer = covey.torch.DistributedOptimizer(
            torch.optim.AdamW(model.parameters(), lr=0.003), model.named_parameters(),
            worker=worker, samples_per_step=32, max_norm=1.0)
        trainer = transformers.Trainer(
            model=model, train_dataset=mine,
            optimizers=(optimizer, torch.optim.lr_scheduler.LinearLR(
                optimizer, start_factor=1.0, end_factor=0.1, total_iters=128)),
            args=transformers.TrainingArguments(
                output_dir=folder, num_train_epochs=8, per_device_train_batch_size=32,
                max_grad_norm=0, logging_steps=16, save_strategy="no", report_to=[], use_cpu=True,
                disable_tqdm=True))
        trainer.train()
        worker.barrier("trained", timeout=300)
        optimizer.refresh()
        if worker.rank == 0:
            losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
            print(f"losses {float(losses[0]):.3f} {float(losses[-1]):.3f}", flush=True)
        optimizer.close()


main()
