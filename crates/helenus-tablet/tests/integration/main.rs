//! A store on a real folder: reads and writes, restarts, kill -9, full disks, damage.

mod basic;
mod branches;
mod bucket;
mod caches;
mod compaction;
mod crash;
mod cuts;
mod damage;
mod disk_full;
mod faulty;
mod history;
mod log_store;
mod pinned;
mod plain_model;
mod purges;
mod read_only;
mod reads;
mod remote;
mod remote_tablets;
mod rest;
mod scans;
mod stored_rows;
mod support;
