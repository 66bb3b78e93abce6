import Logging
internal import Platform

/// The messages of the module.
enum Log {
    static let logger = Logger(label: "strata.swiftdata")
    private static let logged = Mutex<Set<String>>([])

    /// Logs a warning, unless one about the same subject was logged before.
    static func once(_ subject: String, _ message: String) {
        guard logged.withLock({ $0.insert(subject).inserted }) else { return }
        logger.warning("\(message)")
    }
}
