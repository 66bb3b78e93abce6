internal import CLinuxHost

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif
#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// The machine and the software versions of a measurement.
public struct Machine: Sendable, Codable {
    public var processor: String
    public var cores: Int
    public var memoryBytes: Int
    public var system: String
    public var swift: String
    /// Versions of the libraries, by name.
    public var libraries: [String: String]
    public var build: String
    public var loadAverage: Double
    public var date: String
    public var command: String

    public init(libraries: [String: String]) {
        processor = Self.field("/proc/cpuinfo", "model name") ?? "unknown processor"
        cores = ProcessInfo.processInfo.activeProcessorCount
        memoryBytes = (Self.field("/proc/meminfo", "MemTotal").flatMap { Int($0.split(separator: " ")[0]) } ?? 0) * 1024
        let kernel = (try? String(contentsOfFile: "/proc/sys/kernel/osrelease", encoding: .utf8)) ?? ""
        system = "Linux " + kernel.trimmingLineEnd
        #if swift(>=6.4)
            swift = "6.4 or newer"
        #elseif swift(>=6.3)
            swift = "6.3"
        #else
            swift = "6.2"
        #endif
        #if DEBUG
            build = "debug: not for comparing"
        #else
            build = "release"
        #endif
        self.libraries = libraries
        let load = (try? String(contentsOfFile: "/proc/loadavg", encoding: .utf8)) ?? ""
        loadAverage = load.split(separator: " ").first.flatMap { Double($0) } ?? 0
        date = Date.now.formatted(.iso8601)
        command = (["strata-bench"] + CommandLine.arguments.dropFirst()).joined(separator: " ")
    }

    /// A one-line summary for display.
    public var summary: String {
        let versions = libraries.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }.joined(separator: ", ")
        return "\(processor), \(cores) cores, \(memoryBytes >> 30) GiB, \(system), Swift \(swift), \(versions), \(build), "
            + "load \(loadAverage), \(date)"
    }

    /// Whether a folder is in memory, where a sync costs nothing. False if that is unknown.
    public static func isInMemory(_ folder: URL) -> Bool {
        #if os(Linux)
            var status = statfs()
            guard statfs(folder.path, &status) == 0 else { return false }
            let (tmpfs, ramfs) = (0x0102_1994, 0x8584_58F6)
            return [tmpfs, ramfs].contains(Int(status.f_type))
        #else
            return false
        #endif
    }

    private static func field(_ path: String, _ name: String) -> String? {
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else { return nil }
        for line in text.split(separator: "\n") where line.hasPrefix(name) {
            guard let colon = line.firstIndex(of: ":") else { return nil }
            return String(line[line.index(after: colon)...].drop { $0 == " " || $0 == "\t" })
        }
        return nil
    }
}

extension String {
    fileprivate var trimmingLineEnd: String { hasSuffix("\n") ? String(dropLast()) : self }
}
