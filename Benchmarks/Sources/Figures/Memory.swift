internal import CLinuxHost

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The process's memory, as the kernel counts it. Zeros where `/proc` does not say.
public enum Memory {
    /// Resident now, maps of files included.
    public static func residentBytes() -> Int { field("VmRSS:") }

    /// Resident now, without maps of files.
    public static func anonymousBytes() -> Int { field("RssAnon:") }

    /// The most that was resident since ``resetPeak()``, or since the process began where a reset is not allowed.
    public static func peakBytes() -> Int { field("VmHWM:") }

    /// Gives free memory back to the system and begins a new peak.
    public static func resetPeak() {
        malloc_trim(0)
        try? "5".write(toFile: "/proc/self/clear_refs", atomically: false, encoding: .utf8)
    }

    private static func field(_ name: String) -> Int {
        guard let text = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8) else { return 0 }
        for line in text.split(separator: "\n") where line.hasPrefix(name) {
            let number = line.dropFirst(name.count).split { $0 == " " || $0 == "\t" }.first.flatMap { Int($0) }
            return (number ?? 0) * 1024
        }
        return 0
    }
}
