//! Compiles single kernels when a program asks for them, outside of a build script: rustc compiles
//! the rest of their crate no further than it must, so a kernel takes a second or two, and one that
//! has not changed since it was asked for takes nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::{
    CudaBuilder, CudaBuilderError, build_script::BuildScript, device_build, kernel_files, ptx,
    record::Record, toolchain,
};

impl CudaBuilder {
    /// As [`build`](Self::build), for a program: `folder` is used in place of `OUT_DIR`.
    ///
    /// # Errors
    ///
    /// As [`build`](Self::build).
    pub fn build_now(&self, folder: &Path) -> Result<PathBuf, CudaBuilderError> {
        let mut script = BuildScript::of_a_program(folder);
        let built = self.build_in(&mut script);
        built.map_err(|error| toolchain::explain(error, &script))
    }

    /// The PTX of the kernels of these names, each a module of its own; a name that is no kernel's
    /// has none. `folder` is the `OUT_DIR` of a build script, or some folder that lasts: what was
    /// compiled is kept in it.
    ///
    /// # Errors
    ///
    /// As [`build`](Self::build).
    pub fn kernels(
        &self,
        names: &[&str],
        folder: &Path,
    ) -> Result<BTreeMap<String, String>, CudaBuilderError> {
        let mut script = BuildScript::of_a_program(folder);
        let compiled = self.kernels_in(names, &mut script);
        compiled.map_err(|error| toolchain::explain(error, &script))
    }

    /// The kernels of these names in OpenCL C, or the reason why one has none. It needs no libNVVM.
    ///
    /// # Errors
    ///
    /// As [`build`](Self::build).
    pub fn opencl(
        &self,
        names: &[&str],
        folder: &Path,
    ) -> Result<BTreeMap<String, Result<String, String>>, CudaBuilderError> {
        let mut script = BuildScript::of_a_program(folder);
        let compiled = self.opencl_in(names, &mut script);
        compiled.map_err(|error| toolchain::explain(error, &script))
    }

    fn kernels_in(
        &self,
        names: &[&str],
        script: &mut BuildScript,
    ) -> Result<BTreeMap<String, String>, CudaBuilderError> {
        let crate_folder = self.crate_folder()?;
        let libnvvm = found_libnvvm(script)?;
        let mut kernels = BTreeMap::new();
        let mut missing = Vec::new();
        for name in names {
            let folder = script.out_dir.join(format!("{}.{name}", self.arch));
            let settings = format!("{self:?} {crate_folder:?} {libnvvm:?} {name}");
            let record = Record::new(script, settings, vec![folder.clone()]);
            match record.holds(script) {
                true => kernels.extend(
                    kernel_files::read_ptx(&folder, name).map(|ptx| (name.to_string(), ptx)),
                ),
                false => missing.push((*name, folder, record)),
            }
        }
        if missing.is_empty() {
            return Ok(kernels);
        }
        script.instructions.clear();
        let libnvvm = self.libnvvm(script)?;
        let only: Vec<String> = missing.iter().map(|(name, ..)| name.to_string()).collect();
        let options = device_build::Options {
            only: &only,
            ..self.cargo_options()
        };
        let crates = device_build::build(&crate_folder, options, script)?;
        let (module, _) = ptx::lower(&crates, self.arch, self.debug, self.panic_messages, None)?;
        let kept_ir = script.out_dir.join(format!("kernels.{}.ll", self.arch));
        let options = self.nvvm_options();
        let compiled = libnvvm.compile_kernels(&module, self.arch, &options, &kept_ir)?;
        for (name, folder, record) in missing {
            let own = compiled.get_key_value(name);
            let own = own.map(|(name, ptx)| (name.clone(), ptx.clone()));
            let own = BTreeMap::from_iter(own);
            kernel_files::write_ptx(&folder, &own)?;
            record.write(script)?;
            kernels.extend(own);
        }
        Ok(kernels)
    }

    fn opencl_in(
        &self,
        names: &[&str],
        script: &mut BuildScript,
    ) -> Result<BTreeMap<String, Result<String, String>>, CudaBuilderError> {
        let crate_folder = self.crate_folder()?;
        let own = |name: &str| {
            let folder = script.out_dir.join(format!("opencl.{name}"));
            let settings = format!("{self:?} {crate_folder:?} {name} opencl");
            let record = Record::new(script, settings, vec![folder.clone()]);
            (folder, record)
        };
        let all: Vec<_> = names.iter().map(|name| (*name, own(name))).collect();
        let mut missing = Vec::new();
        for (name, (folder, record)) in &all {
            if !record.holds(script) {
                missing.push((*name, folder, record));
            }
        }
        if !missing.is_empty() {
            let only: Vec<String> = missing.iter().map(|(name, ..)| name.to_string()).collect();
            let options = device_build::Options {
                only: &only,
                ..self.cargo_options()
            };
            let crates = device_build::build(&crate_folder, options, script)?;
            let mut kernels = ptx::lower_opencl(&crates, self.contraction())?;
            for (name, folder, record) in missing {
                let of_name = kernels.extract_if(.., |(kernel, _)| kernel == name);
                let of_name = of_name.collect();
                kernel_files::write_opencl(folder, &of_name)?;
                record.write(script)?;
            }
        }
        let found = all.iter().filter_map(|(name, (folder, _))| {
            let text = kernel_files::read_opencl(folder, name)?;
            Some((name.to_string(), text))
        });
        Ok(found.collect())
    }
}

/// The libNVVM that this process finds. Kernels depend on it and not on the variables that lead to
/// it, of which cargo sets one for each program that it runs.
fn found_libnvvm(script: &BuildScript) -> Result<&'static Path, CudaBuilderError> {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    match FOUND.get() {
        Some(found) => Ok(found),
        None => {
            let toolkit = script.search.find_or_fetch()?;
            Ok(FOUND.get_or_init(|| toolkit.libnvvm))
        }
    }
}
