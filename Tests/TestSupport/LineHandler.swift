import Logging

/// A handler of log messages that gives each, with its level, to a closure.
public struct LineHandler: LogHandler {
    private let note: @Sendable (String) -> Void
    public var metadata: Logger.Metadata = [:]
    public var logLevel = Logger.Level.trace

    public init(_ note: @escaping @Sendable (String) -> Void) { self.note = note }

    public subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    public func log(event: LogEvent) { note("\(event.level) \(event.message)") }
}
