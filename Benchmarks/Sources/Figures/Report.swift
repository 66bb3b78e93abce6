#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// All measurements of a command. Its encoding is the output of `--json`.
public struct Report: Sendable, Encodable {
    public var schema = 1
    public var machine: Machine
    public var notes: [String]
    public var runs: [Row]

    public init(machine: Machine, notes: [String] = [], runs: [Row] = []) {
        self.machine = machine
        self.notes = notes
        self.runs = runs
    }

    /// The figures of one configuration over its repeats. Figures that do not apply are absent.
    public struct Row: Sendable, Encodable {
        public var benchmark: String
        public var stack: String?
        public var store: String?
        public var routing: String?
        public var durability: String
        public var operation: String?
        /// `strata`, `sqlite-raw`, `lmdb-raw`, `strata-sqlite`, `strata-memory`, `grdb`, `grdb-sql`.
        public var engine: String?
        public var objects: Int
        public var saveEvery: Int?
        public var totalSeconds: Spread?
        public var processCPUSeconds: Spread?
        public var mainCPUSeconds: Spread?
        public var mainBusySeconds: Spread?
        public var longestStallMilliseconds: Spread?
        public var missedFrames60: Spread?
        public var missedFrames120: Spread?
        public var saves: Int?
        public var nanosecondsPerObject: Spread?
        /// The requests that contexts sent to their parents, divided by the number of objects.
        public var hopsPerObject: Spread?
        /// The same requests by kind and level, not divided: "fault 2" is a fault of a child of a child of the root.
        public var hops: [String: Spread]?
        public var extraMilliseconds: [String: Spread]?
        public var fileBytes: Int?
        public var peakMemoryBytes: Int?
        public var residentAfterBytes: Int?
        public var verified: Bool
        /// The repeats, for timelines. They are not part of the JSON.
        public var timelines: [RunFigures] = []

        private enum CodingKeys: CodingKey {
            case benchmark, stack, store, routing, durability, operation, engine, objects, saveEvery, totalSeconds
            case processCPUSeconds, mainCPUSeconds, mainBusySeconds, longestStallMilliseconds, missedFrames60, missedFrames120
            case saves, nanosecondsPerObject, hopsPerObject, hops, extraMilliseconds, fileBytes, peakMemoryBytes,
                residentAfterBytes, verified
        }

        public init(benchmark: String, durability: String, objects: Int, verified: Bool) {
            self.benchmark = benchmark
            self.durability = durability
            self.objects = objects
            self.verified = verified
        }

        /// Sets the figures from the repeats. Precondition: at least one.
        public mutating func take(_ runs: [RunFigures]) {
            totalSeconds = Spread(runs.map(\.totalSeconds))
            processCPUSeconds = Spread(runs.map(\.processCPUSeconds))
            mainCPUSeconds = Spread(runs.map(\.mainCPUSeconds))
            mainBusySeconds = Spread(runs.map(\.main.busySeconds))
            longestStallMilliseconds = Spread(runs.map(\.main.longestStallMilliseconds))
            missedFrames60 = Spread(runs.map { Double($0.main.missedFrames60) })
            missedFrames120 = Spread(runs.map { Double($0.main.missedFrames120) })
            saves = runs.map(\.saves).max()
            fileBytes = runs.map(\.fileBytes).max()
            peakMemoryBytes = runs.map(\.peakMemoryBytes).max()
            residentAfterBytes = runs.map(\.residentAfterBytes).max()
            extraMilliseconds = Self.spreads(runs.map(\.extra))
            hops = Self.spreads(runs.map { $0.hops.mapValues(Double.init) })
            let objects = Double(max(1, objects))
            hopsPerObject = Spread(runs.map { Double($0.hops.values.reduce(0, +)) / objects })
            timelines = runs
        }

        /// Returns the spread of each named figure, or nil if there are none.
        private static func spreads(_ runs: [[String: Double]]) -> [String: Spread]? {
            let names = Set(runs.flatMap(\.keys))
            if names.isEmpty { return nil }
            return Dictionary(uniqueKeysWithValues: names.map { name in (name, Spread(runs.compactMap { $0[name] })) })
        }
    }

    public func json() throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return try encoder.encode(self)
    }
}
