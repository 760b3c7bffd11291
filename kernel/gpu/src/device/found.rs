//! Which devices there are.

use cl3::device::{CL_DEVICE_TYPE_ALL, get_device_ids};
use cl3::error_codes::{CL_DEVICE_NOT_FOUND, ClError, DLOPEN_RUNTIME_LOAD_FAILED};
use cl3::platform::{CL_PLATFORM_NAME, get_platform_ids, get_platform_info};
use cl3::types::cl_int;

use super::Device;

/// The library finds no driver: `CL_PLATFORM_NOT_FOUND_KHR`.
const NO_PLATFORM: i32 = -1_001;

/// What OpenCL finds on a machine.
pub struct Found<D = Device> {
    /// The devices of all drivers: GPUs and accelerators first, CPUs last.
    pub devices: Vec<D>,
    /// Drivers that fail, with the reason.
    pub failed: Vec<String>,
}

/// Why no device can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoDevice {
    #[error(
        "no OpenCL library (libOpenCL.so.1) can be loaded: install ocl-icd-libopencl1 or your vendor's driver. A \
         statically linked program can't load it at all"
    )]
    NoLibrary,
    #[error(
        "OpenCL is here, but no driver: a file in /etc/OpenCL/vendors names it. In a container it may be missing: write one, \
         such as nvidia.icd with the line libnvidia-opencl.so.1; OCL_ICD_VENDORS may name another folder"
    )]
    NoPlatform,
    #[error("OpenCL is here, but its drivers find no device: is it visible, and may this user open it?")]
    NoDevice,
    #[error("OpenCL fails: {0}")]
    Failed(String),
}

/// The devices of all drivers that work.
pub fn devices() -> Result<Found, NoDevice> {
    let platforms = get_platform_ids().map_err(no_platforms)?;
    let mut found = gather(platforms.into_iter().map(|platform| {
        let name = get_platform_info(platform, CL_PLATFORM_NAME);
        let devices = get_device_ids(platform, CL_DEVICE_TYPE_ALL);
        let devices = devices.map(|devices| devices.into_iter().map(Device).collect());
        (name.map_or_else(|_| "unnamed".to_owned(), String::from), devices)
    }))?;
    found.devices.sort_by_key(Device::is_cpu);
    Ok(found)
}

/// Why there are no platforms.
fn no_platforms(code: cl_int) -> NoDevice {
    match code {
        DLOPEN_RUNTIME_LOAD_FAILED => NoDevice::NoLibrary,
        NO_PLATFORM => NoDevice::NoPlatform,
        _ => NoDevice::Failed(ClError(code).to_string()),
    }
}

/// The devices of drivers with these names. One that fails takes none from the others.
fn gather<D>(
    drivers: impl IntoIterator<Item = (String, Result<Vec<D>, cl_int>)>,
) -> Result<Found<D>, NoDevice> {
    let (mut found, mut drivers) =
        (Found { devices: Vec::new(), failed: Vec::new() }, drivers.into_iter().peekable());
    if drivers.peek().is_none() {
        return Err(NoDevice::NoPlatform);
    }
    for (name, devices) in drivers {
        match devices {
            Ok(devices) => found.devices.extend(devices),
            Err(CL_DEVICE_NOT_FOUND) => {}
            Err(code) => {
                found.failed.push(format!("the driver {} fails: {}", name.trim(), ClError(code)));
            }
        }
    }
    if !found.devices.is_empty() {
        Ok(found)
    } else if found.failed.is_empty() {
        Err(NoDevice::NoDevice)
    } else {
        Err(NoDevice::Failed(found.failed.join("; ")))
    }
}

#[cfg(test)]
mod tests {
    use cl3::error_codes::CL_OUT_OF_HOST_MEMORY;

    use super::*;

    /// What is found, by drivers that have these devices or fail so.
    fn found(drivers: &[(&str, Result<Vec<u8>, i32>)]) -> Result<(Vec<u8>, Vec<String>), NoDevice> {
        let drivers = drivers.iter().cloned();
        let found = gather(drivers.map(|(name, devices)| (name.to_owned(), devices)))?;
        Ok((found.devices, found.failed))
    }

    #[test]
    fn what_is_missing_is_named() {
        let missing = [DLOPEN_RUNTIME_LOAD_FAILED, NO_PLATFORM].map(no_platforms);
        assert_eq!(missing, [NoDevice::NoLibrary, NoDevice::NoPlatform]);
        assert!(matches!(no_platforms(CL_OUT_OF_HOST_MEMORY), NoDevice::Failed(_)));
        assert_eq!(found(&[]), Err(NoDevice::NoPlatform));
        let none = [("one", Err(CL_DEVICE_NOT_FOUND)), ("other", Ok(Vec::new()))];
        assert_eq!(found(&none), Err(NoDevice::NoDevice));
        let begins = [
            (NoDevice::NoLibrary, "no OpenCL library (libOpenCL.so.1) can be loaded: "),
            (NoDevice::NoPlatform, "OpenCL is here, but no driver: "),
            (NoDevice::NoDevice, "OpenCL is here, but its drivers find no device: "),
        ];
        for (why, begin) in begins {
            assert!(why.to_string().starts_with(begin), "{why}");
        }
    }

    #[test]
    fn a_driver_that_fails_hides_no_device() {
        let mut drivers =
            [("broken ", Err(CL_OUT_OF_HOST_MEMORY)), ("sound", Ok(vec![1, 2])), ("more", Ok(vec![3]))];
        let (devices, failed) = found(&drivers).unwrap();
        assert_eq!((devices, failed.len()), (vec![1, 2, 3], 1));
        assert!(failed[0].starts_with("the driver broken fails: "), "{failed:?}");
        drivers[1].1 = Ok(Vec::new());
        drivers[2].1 = Err(CL_DEVICE_NOT_FOUND);
        assert_eq!(found(&drivers), Err(NoDevice::Failed(failed[0].clone())));
    }
}
