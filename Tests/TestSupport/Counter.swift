import ObjectGraph
import Platform
import StoreInterface
import StoreModel

/// Collects notices from any executor.
public final class Counter: Sendable {
    private let notices = Mutex<[ContextNotice]>([])

    public init() {}

    public func note(_ notice: ContextNotice) { notices.withLock { $0.append(notice) } }

    public var all: [ContextNotice] { notices.withLock { $0 } }

    public func count(_ kind: ContextNotice.Kind) -> Int { all.filter { $0.kind == kind }.count }
}
