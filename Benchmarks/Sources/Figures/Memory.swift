internal import CLinuxHost

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The memory of the process, as the kernel counts it. All values are zero if `/proc` does not have them.
public enum Memory {
    /// Returns the resident memory, including memory-mapped files.
    public static func residentBytes() -> Int { field("VmRSS:") }

    /// Returns the resident memory without memory-mapped files.
    public static func anonymousBytes() -> Int { field("RssAnon:") }

    /// Returns the peak of resident memory since ``resetPeak()``, or since the process began if a reset is not permitted.
    public static func peakBytes() -> Int { field("VmHWM:") }

    /// Returns free memory to the system and begins a new peak.
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
