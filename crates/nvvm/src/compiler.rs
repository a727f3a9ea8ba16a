//! Calling libNVVM: NVVM IR in, PTX out.
//!
//! The functions and their numbers are those of `nvvm.h`, which every CUDA SDK has and NVIDIA
//! documents in "libNVVM API".

use std::{
    ffi::{CStr, CString, OsString, c_char, c_int, c_void},
    io,
    mem::ManuallyDrop,
    ptr,
};

use libloading::Library;

use crate::{Error, NvvmArch, Origin, Toolkit, Version, process};

type Program = *mut c_void;
type Status = c_int;

const NVVM_SUCCESS: Status = 0;
const NVVM_ERROR_INVALID_OPTION: Status = 7;

/// The kinds of answer that the process of a compilation gives, each with a text.
const PTX: &str = "ptx";
const REJECTED: &str = "rejected";
const UNKNOWN_ARCH: &str = "unknown arch";
const FAILED: &str = "failed";

/// The environment variable that says how many seconds a module may take; 0 is any number.
const TIME_LIMIT: &str = "LIBNVVM_TIME_LIMIT";

/// libNVVM, loaded.
pub struct Compiler {
    functions: Functions,
    version: Version,
    origin: Origin,
}

impl Compiler {
    /// Loads the toolkit's libNVVM into this process, where it stays.
    ///
    /// # Errors
    ///
    /// [`Error::Load`] if the dynamic linker rejects it, or if it is not a libNVVM.
    ///
    /// # Safety
    ///
    /// The file `toolkit.libnvvm` is a libNVVM, if it can be loaded: to load a library runs code of
    /// it, and its functions are called with libNVVM's arguments.
    pub unsafe fn load(toolkit: &Toolkit) -> Result<Compiler, Error> {
        let functions = Functions::load(&toolkit.libnvvm).map_err(|source| Error::Load {
            path: toolkit.libnvvm.clone(),
            origin: toolkit.origin.clone(),
            source,
        })?;

        let (mut major, mut minor) = (0, 0);
        // SAFETY: both pointers are valid for a write of a C int.
        let status = unsafe { (functions.version)(&mut major, &mut minor) };
        functions.check("nvvmVersion", status)?;
        Ok(Compiler {
            functions,
            version: Version {
                major: major.unsigned_abs(),
                minor: minor.unsigned_abs(),
            },
            origin: toolkit.origin.clone(),
        })
    }

    /// The version of libNVVM's interface: 2.0 since CUDA 12.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Verifies the first module, then compiles all into one PTX text for `arch`.
    ///
    /// A module is a name, for messages, and NVVM IR as text or bitcode. From the second on they
    /// are libraries, such as libdevice: only what the modules before use of them goes into the
    /// PTX. `options` are libNVVM's own, such as `-opt=3` and `-ftz=1`, without `-arch`.
    ///
    /// Each call has a process of its own, except on Windows, since libNVVM keeps state: after a
    /// module at `-opt=0` it compiles the next one at `-opt=3` to other PTX than it would have
    /// done first.
    ///
    /// # Errors
    ///
    /// [`Error::Rejected`] with libNVVM's log; [`Error::UnknownArch`]; [`Error::NoAnswer`] if
    /// libNVVM crashes; [`Error::TimeLimit`] if `LIBNVVM_TIME_LIMIT` is not a number.
    pub fn compile(
        &self,
        modules: &[(&str, &[u8])],
        arch: NvvmArch,
        options: &[&str],
    ) -> Result<String, Error> {
        let seconds = time_limit(std::env::var_os(TIME_LIMIT))?;
        let answer = process::apart(seconds, || {
            let answer = self.compile_here(modules, arch, options);
            let (kind, text) = answer.unwrap_or_else(|error| (FAILED, error.to_string()));
            format!("{kind}\n{text}").into_bytes()
        });
        let answer = answer.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let (module, _) = modules.first().unwrap_or(&("no module", &[]));
        let module = (*module).to_owned();
        let problem = match answer.as_deref().map(|answer| answer.split_once('\n')) {
            Ok(Some((PTX, ptx))) => return Ok(ptx.to_owned()),
            Ok(Some((REJECTED, log))) => {
                let log = log.to_owned();
                return Err(Error::Rejected { module, arch, log });
            }
            Ok(Some((UNKNOWN_ARCH, _))) => {
                return Err(Error::UnknownArch {
                    arch,
                    version: self.version,
                    origin: self.origin.clone(),
                });
            }
            Ok(answer) => answer.unwrap_or_default().1.to_owned(),
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                return Err(Error::TooLong {
                    module,
                    arch,
                    seconds,
                });
            }
            Err(error) => error.to_string(),
        };
        Err(Error::NoAnswer {
            module,
            arch,
            problem,
        })
    }

    /// [`Self::compile`] in this process: what kind of answer it is, and its text.
    fn compile_here(
        &self,
        modules: &[(&str, &[u8])],
        arch: NvvmArch,
        options: &[&str],
    ) -> Result<(&'static str, String), Error> {
        let program = OpenProgram::create(&self.functions)?;
        let (ours, libraries) = modules.split_at(modules.len().min(1));
        for (name, text) in ours {
            program.add(false, name, text)?;
        }

        let arch_option = format!("-arch={arch}");
        let options: Vec<CString> = std::iter::once(arch_option.as_str())
            .chain(options.iter().copied())
            .map(c_string)
            .collect();
        let options: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        let count = options.len() as c_int;

        // SAFETY: the program is open; `options` are `count` C strings, alive during the call.
        let verified = unsafe { (self.functions.verify)(program.handle, count, options.as_ptr()) };
        if let Some(refusal) = self.refusal(verified, &program)? {
            return Ok(refusal);
        }
        // Not verified: libdevice contains intrinsics that the verifier does not know.
        for (name, text) in libraries {
            program.add(true, name, text)?;
        }
        // SAFETY: as above.
        let compiled = unsafe { (self.functions.compile)(program.handle, count, options.as_ptr()) };
        match self.refusal(compiled, &program)? {
            Some(refusal) => Ok(refusal),
            None => Ok((PTX, program.result()?)),
        }
    }

    /// What the status of verifying or compiling says, with the log, unless all went well.
    fn refusal(
        &self,
        status: Status,
        program: &OpenProgram<'_>,
    ) -> Result<Option<(&'static str, String)>, Error> {
        if status == NVVM_SUCCESS {
            return Ok(None);
        }
        let log = program.log()?;
        if status == NVVM_ERROR_INVALID_OPTION && log.contains("-arch=") {
            return Ok(Some((UNKNOWN_ARCH, log)));
        }
        let log = match log.trim() {
            "" => self.functions.message(status),
            log => log.to_owned(),
        };
        Ok(Some((REJECTED, log)))
    }
}

/// The seconds that libNVVM has for a module, as the environment says. A kernel takes it one or
/// two, unless it meets one of the loops that take it twice as long for each iteration.
fn time_limit(asked: Option<OsString>) -> Result<u32, Error> {
    let Some(value) = asked else {
        return Ok(600);
    };
    let seconds = value.to_str().and_then(|value| value.parse().ok());
    seconds.ok_or(Error::TimeLimit { value })
}

/// A C string of `text`, up to its first NUL if it has one: names in messages, and options, have
/// none.
fn c_string(text: &str) -> CString {
    let bytes = text.bytes().take_while(|&byte| byte != 0).collect();
    // No NUL remains, so this is never the default.
    CString::new::<Vec<u8>>(bytes).unwrap_or_default()
}

/// A program of libNVVM's, destroyed when dropped.
struct OpenProgram<'a> {
    functions: &'a Functions,
    handle: Program,
}

impl<'a> OpenProgram<'a> {
    fn create(functions: &'a Functions) -> Result<Self, Error> {
        let mut handle = ptr::null_mut();
        // SAFETY: the pointer is valid for a write of a program's handle.
        let status = unsafe { (functions.create)(&mut handle) };
        functions.check("nvvmCreateProgram", status)?;
        Ok(OpenProgram { functions, handle })
    }

    fn add(&self, is_library: bool, name: &str, text: &[u8]) -> Result<(), Error> {
        let (function, add) = if is_library {
            ("nvvmLazyAddModuleToProgram", self.functions.add_library)
        } else {
            ("nvvmAddModuleToProgram", self.functions.add_module)
        };
        let name = c_string(name);
        // SAFETY: the program is open, `text` is valid for reads of its length, `name` is a C
        // string; libNVVM copies both.
        let status = unsafe { add(self.handle, text.as_ptr().cast(), text.len(), name.as_ptr()) };
        self.functions.check(function, status)
    }

    fn log(&self) -> Result<String, Error> {
        let Functions { log_size, log, .. } = *self.functions;
        self.text("nvvmGetProgramLog", log_size, log)
    }

    fn result(&self) -> Result<String, Error> {
        let Functions {
            result_size,
            result,
            ..
        } = *self.functions;
        self.text("nvvmGetCompiledResult", result_size, result)
    }

    /// A text that libNVVM returns in two calls: its size, final NUL included, then its bytes.
    fn text(&self, name: &'static str, size: GetSize, text: GetText) -> Result<String, Error> {
        let mut length = 0;
        // SAFETY: the program is open and the pointer is valid for a write of a size.
        let status = unsafe { size(self.handle, &mut length) };
        self.functions.check(name, status)?;
        let mut bytes = vec![0_u8; length];
        // SAFETY: the program is open and the buffer holds as many bytes as libNVVM has just
        // requested.
        let status = unsafe { text(self.handle, bytes.as_mut_ptr().cast()) };
        self.functions.check(name, status)?;
        while bytes.last() == Some(&0) {
            bytes.pop();
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

impl Drop for OpenProgram<'_> {
    fn drop(&mut self) {
        // SAFETY: the program is open and nothing uses its handle after this. An error could not
        // be handled.
        unsafe { (self.functions.destroy)(&mut self.handle) };
    }
}

type AddModule = unsafe extern "C" fn(Program, *const c_char, usize, *const c_char) -> Status;
type RunProgram = unsafe extern "C" fn(Program, c_int, *const *const c_char) -> Status;
type GetSize = unsafe extern "C" fn(Program, *mut usize) -> Status;
type GetText = unsafe extern "C" fn(Program, *mut c_char) -> Status;

/// The functions of libNVVM that are used here, from a library that is never unloaded.
struct Functions {
    version: unsafe extern "C" fn(*mut c_int, *mut c_int) -> Status,
    error_string: unsafe extern "C" fn(Status) -> *const c_char,
    create: unsafe extern "C" fn(*mut Program) -> Status,
    destroy: unsafe extern "C" fn(*mut Program) -> Status,
    add_module: AddModule,
    add_library: AddModule,
    verify: RunProgram,
    compile: RunProgram,
    log_size: GetSize,
    log: GetText,
    result_size: GetSize,
    result: GetText,
}

impl Functions {
    fn load(path: &std::path::Path) -> Result<Functions, libloading::Error> {
        // SAFETY: libNVVM's initialisers set up its own state and nothing of ours.
        let library = unsafe { Library::new(path)? };
        // The functions are copied out of it, and it has process-wide state: it stays loaded for
        // good.
        let library = ManuallyDrop::new(library);
        // SAFETY: each symbol has the type that `nvvm.h` declares for it, the same in every
        // version.
        unsafe {
            Ok(Functions {
                version: *library.get("nvvmVersion")?,
                error_string: *library.get("nvvmGetErrorString")?,
                create: *library.get("nvvmCreateProgram")?,
                destroy: *library.get("nvvmDestroyProgram")?,
                add_module: *library.get("nvvmAddModuleToProgram")?,
                add_library: *library.get("nvvmLazyAddModuleToProgram")?,
                verify: *library.get("nvvmVerifyProgram")?,
                compile: *library.get("nvvmCompileProgram")?,
                log_size: *library.get("nvvmGetProgramLogSize")?,
                log: *library.get("nvvmGetProgramLog")?,
                result_size: *library.get("nvvmGetCompiledResultSize")?,
                result: *library.get("nvvmGetCompiledResult")?,
            })
        }
    }

    fn check(&self, function: &'static str, status: Status) -> Result<(), Error> {
        if status == NVVM_SUCCESS {
            return Ok(());
        }
        Err(Error::Call {
            function,
            message: self.message(status),
        })
    }

    fn message(&self, status: Status) -> String {
        // SAFETY: it takes any number, and returns a C string that lives as long as the library,
        // or null.
        let message = unsafe { (self.error_string)(status) };
        if message.is_null() {
            return format!("status {status}");
        }
        // SAFETY: not null, so the C string of above.
        unsafe { CStr::from_ptr(message) }
            .to_string_lossy()
            .into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_limit_is_a_whole_number_of_seconds() {
        let limit = |value: &str| time_limit(Some(value.into())).map_err(|error| error.to_string());
        assert!(matches!(time_limit(None), Ok(600)));
        assert_eq!(
            (limit("0"), limit("7"), limit("4294967295")),
            (Ok(0), Ok(7), Ok(u32::MAX))
        );
        for wrong in ["", "10 min", "-1", "1.5", "4294967296"] {
            let error = limit(wrong).expect_err(wrong);
            let parts = [TIME_LIMIT, &format!("{wrong:?}"), "0 to 4294967295"];
            assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        }
    }
}
