// SPDX-License-Identifier: MIT
//! Run a command in a jail from Rust, with declarations of the functions used here instead of bindings.
//!
//!     rustc run.rs $(pkg-config --libs libbrig) && ./run sh -c 'echo hello; exit 3'
//!
//! Rust has the layout of structs that the caller fills or that the caller owns; everything else is opaque. `size`
//! tells the library which members this program knows, so that it works with later versions as well.

use std::env;
use std::ffi::{CStr, CString};
use std::os::raw::{c_char, c_int, c_void};
use std::os::unix::ffi::OsStringExt;
use std::process::exit;
use std::ptr::{null, null_mut};
use std::slice;

// ---- brig/brig.h, as much as is used ----

#[repr(C)]
struct Error {
    code: c_int,
    sys_errno: c_int,
    message: [c_char; 1024], // BRIG_MESSAGE_MAX
}

#[repr(C)]
struct Stdio {
    kind: c_int,
    fd: c_int,
    bytes: *const c_void,
    length: usize,
}

#[repr(C)]
struct Command {
    size: usize,
    argv: *const *const c_char,
    envp: *const *const c_char,
    stdio: [Stdio; 3],
    pass_fds: *const c_void,
    pass_fd_count: usize,
}

enum Policy {}
enum Outcome {} // struct brig_result

const MODE_SEALED: c_int = 0;
const LIMIT_WALL_MS: c_int = 0;
const STDIO_NULL: c_int = 0;
const STDIO_CAPTURE: c_int = 3;

extern "C" {
    fn brig_policy_new(mode: c_int) -> *mut Policy;
    fn brig_policy_free(policy: *mut Policy);
    fn brig_policy_limit(policy: *mut Policy, limit: c_int, value: u64, err: *mut Error) -> c_int;
    fn brig_policy_host_env(policy: *mut Policy, on: c_int, err: *mut Error) -> c_int;
    fn brig_run(
        policy: *const Policy,
        command: *const Command,
        ret_result: *mut *mut Outcome,
        err: *mut Error,
    ) -> c_int;
    fn brig_result_free(result: *mut Outcome);
    fn brig_result_outcome(result: *const Outcome) -> c_int;
    fn brig_outcome_name(outcome: c_int) -> *const c_char;
    fn brig_result_status(result: *const Outcome) -> c_int;
    fn brig_result_output(
        result: *const Outcome,
        stream: c_int,
        ret_length: *mut usize,
        ret_truncated: *mut c_int,
    ) -> *const c_char;
}

// ---- The same as types of Rust ----

/// What a jail may do. Freed when it is dropped.
struct Jail(*mut Policy);

/// What became of a command. Freed when it is dropped.
struct Run(*mut Outcome);

/// Calls a function of the library's that can fail.
fn call(function: impl FnOnce(*mut Error) -> c_int) -> Result<(), String> {
    let mut err = Error { code: 0, sys_errno: 0, message: [0; 1024] };
    if function(&mut err) >= 0 {
        return Ok(());
    }
    // The library ends every message with a NUL.
    let message = unsafe { CStr::from_ptr(err.message.as_ptr()) };
    Err(format!("{} (code {}, errno {})", message.to_string_lossy(), err.code, err.sys_errno))
}

impl Jail {
    fn sealed() -> Result<Jail, String> {
        let policy = unsafe { brig_policy_new(MODE_SEALED) };
        if policy.is_null() {
            return Err("out of memory".to_string());
        }
        Ok(Jail(policy))
    }

    fn limit_wall(&mut self, milliseconds: u64) -> Result<(), String> {
        call(|err| unsafe { brig_policy_limit(self.0, LIMIT_WALL_MS, milliseconds, err) })
    }

    /// Of the variables given to run() the jail passes on what is harmless, and leaves out the others.
    fn filter_environment(&mut self) -> Result<(), String> {
        call(|err| unsafe { brig_policy_host_env(self.0, 1, err) })
    }

    /// Runs a command whose output is captured.
    fn run(&self, words: &[CString], variables: &[CString]) -> Result<Run, String> {
        let terminated = |texts: &[CString]| -> Vec<*const c_char> {
            texts.iter().map(|text| text.as_ptr()).chain(Some(null())).collect()
        };
        let (argv, envp) = (terminated(words), terminated(variables));
        let stream = |kind| Stdio { kind, fd: -1, bytes: null(), length: 0 };
        let command = Command {
            size: std::mem::size_of::<Command>(),
            argv: argv.as_ptr(),
            envp: envp.as_ptr(),
            stdio: [stream(STDIO_NULL), stream(STDIO_CAPTURE), stream(STDIO_CAPTURE)],
            pass_fds: null(),
            pass_fd_count: 0,
        };
        let mut run = Run(null_mut()); // also freed if nothing ran
        call(|err| unsafe { brig_run(self.0, &command, &mut run.0, err) })?;
        Ok(run)
    }
}

impl Drop for Jail {
    fn drop(&mut self) {
        unsafe { brig_policy_free(self.0) }
    }
}

impl Run {
    fn outcome(&self) -> String {
        let name = unsafe { CStr::from_ptr(brig_outcome_name(brig_result_outcome(self.0))) };
        name.to_string_lossy().into_owned()
    }

    fn status(&self) -> i32 {
        unsafe { brig_result_status(self.0) }
    }

    /// Captured output of stream 1 or 2, which lives as long as the result.
    fn output(&self, stream: c_int) -> &[u8] {
        let mut length = 0;
        unsafe {
            let bytes = brig_result_output(self.0, stream, &mut length, null_mut());
            slice::from_raw_parts(bytes.cast(), length)
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        unsafe { brig_result_free(self.0) }
    }
}

// ---- The program ----

fn run(words: &[CString]) -> Result<i32, String> {
    let variables: Vec<CString> = env::vars_os()
        .filter_map(|(name, value)| {
            CString::new([&name.into_vec()[..], b"=", &value.into_vec()[..]].concat()).ok()
        })
        .collect();
    let mut jail = Jail::sealed()?;
    jail.limit_wall(5000)?;
    jail.filter_environment()?;
    let run = jail.run(words, &variables)?;
    print!("{}", String::from_utf8_lossy(run.output(1)));
    eprint!("{}", String::from_utf8_lossy(run.output(2)));
    println!("{}, status {}", run.outcome(), run.status());
    Ok(run.status())
}

fn main() {
    // Arguments of a program have no NUL in them.
    let words: Vec<CString> =
        env::args_os().skip(1).filter_map(|word| CString::new(word.into_vec()).ok()).collect();
    match run(&words) {
        Ok(status) => exit(status),
        Err(message) => {
            eprintln!("run: {}", message);
            exit(125)
        }
    }
}
