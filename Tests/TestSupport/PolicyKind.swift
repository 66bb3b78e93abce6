import Foundation
import ObjectGraph
import StoreInterface

/// The merge policies without a closure, as test arguments.
public enum PolicyKind: String, CaseIterable, Sendable {
    case error, storeTrump, objectTrump, overwrite, rollback

    public var mergePolicy: MergePolicy {
        switch self {
        case .error: .error
        case .storeTrump: .storeTrump
        case .objectTrump: .objectTrump
        case .overwrite: .overwrite
        case .rollback: .rollback
        }
    }

    /// Whether the policy keeps the store's values where both sides changed them.
    public var prefersStore: Bool { self == .storeTrump || self == .rollback }
}

extension MergePolicy {
    /// Adds what both sides have added to integers and to keyed values of the type `Int`. Keeps the deletions of others.
    public static let adding = MergePolicy.custom { conflicts in
        conflicts.reduce(into: [:]) { answers, conflict in
            guard !conflict.isDeletedHere, !conflict.isDeletedInStore else {
                answers[conflict.objectID] = .rollback
                return
            }
            let sums = conflict.properties.compactMap { property in sum(property).map { (property.name, $0) } }
            answers[conflict.objectID] = .values(Dictionary(sums) { first, _ in first })
        }
    }

    private static func sum(_ property: MergeConflict.Property) -> Value? {
        switch (property.base, property.ours, property.theirs) {
        case (.int(let base), .int(let ours), .int(let theirs)): .int(ours + theirs - base)
        case (let base, .data(let ours), .data(let theirs)): .data(bytes(number(ours) + number(theirs) - number(base)))
        default: nil
        }
    }

    private static func number(_ data: Data) -> Int { data.withUnsafeBytes { $0.loadUnaligned(as: Int.self) } }

    /// Returns 0 for a value that did not exist.
    private static func number(_ value: Value?) -> Int {
        guard case .data(let data)? = value else { return 0 }
        return number(data)
    }

    private static func bytes(_ number: Int) -> Data { withUnsafeBytes(of: number) { Data($0) } }
}
