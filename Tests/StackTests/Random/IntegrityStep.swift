import ObjectGraph
import TestSupport

/// One step of a random sequence of changes and saves.
///
/// A step chooses objects that its context shows, by its own seed. Steps can therefore be left out of a sequence.
struct IntegrityStep: Sendable, CustomStringConvertible {
    /// A change of a context.
    enum Change: String, Sendable, CaseIterable {
        case insertArtist, insertProfile, insertAlbum, insertTrack, insertPlaylist, delete, setProfile, setMentor, setArtist, pair
        case setBorn, setCode, reorder
    }

    enum Action: Sendable, CustomStringConvertible {
        case change(Change)
        /// Saves. With `clears`, the root clears references to objects that other contexts have deleted.
        case save(policy: Int, isDeferred: Bool, isThrough: Bool, clears: Bool)
        case undo(policy: Int, isRedo: Bool)
        case undoAuthor(policy: Int)
        /// Imports tracks by a unique value.
        case importTracks(keeps: Bool)
        case refresh, rollback, batchDelete, batchUpdate, saveOrder, dropChanges, insertAndDelete, newChild

        var description: String {
            switch self {
            case .change(let change): change.rawValue
            case .save(let policy, let isDeferred, let isThrough, let clears):
                "save\(isThrough ? "Through" : "")(\(IntegrityTests.policies[policy])\(isDeferred ? ", deferred" : "")"
                    + "\(clears ? ", clears references" : ""))"
            case .undo(let policy, let isRedo): "\(isRedo ? "redo" : "undo")(onConflict \(IntegrityStep.undoPolicies[policy]))"
            case .undoAuthor(let policy): "undoAuthor(onConflict \(IntegrityStep.undoPolicies[policy]))"
            case .refresh: "refresh"
            case .rollback: "rollback"
            case .batchDelete: "batchDelete"
            case .batchUpdate: "batchUpdate"
            case .importTracks(let keeps): "importTracks(\(keeps ? "keep" : "update"))"
            case .saveOrder: "saveOrder"
            case .dropChanges: "dropChanges"
            case .insertAndDelete: "insertAndDelete"
            case .newChild: "newChild"
            }
        }
    }

    static let undoPolicies: [UndoPolicy] = [.error, .skip, .force]

    /// The position in the whole sequence, which a part keeps.
    var number: Int
    /// The process that takes the step, from 0.
    var process: Int
    /// A root (0, 1), or the child of a root (2, 3).
    var context: Int
    var action: Action
    /// The seed of the choice of objects and values.
    var seed: UInt64

    var description: String { "\(number): process \(process), context \(context), \(action)" }

    /// Returns the sequence of a seed.
    static func sequence(_ count: Int, seed: UInt64, processes: Int = 1) -> [IntegrityStep] {
        var random = SeededGenerator(seed: seed)
        return (0..<count).map { number in
            IntegrityStep(
                number: number, process: random.below(processes), context: random.below(4), action: action(&random),
                seed: random.next())
        }
    }

    private static func action(_ random: inout SeededGenerator) -> Action {
        switch random.below(30) {
        case 0..<11:
            let weights: [Change: Int] = [
                .insertArtist: 2, .insertProfile: 2, .insertAlbum: 2, .insertTrack: 5, .insertPlaylist: 2, .delete: 3,
                .setProfile: 2,
                .setCode: 4,
            ]
            let changes = Change.allCases.flatMap { Array(repeating: $0, count: weights[$0] ?? 1) }
            return .change(changes.randomElement(using: &random) ?? .insertArtist)
        case 11..<15:
            let policy = random.below(IntegrityTests.policies.count)
            return .save(
                policy: policy, isDeferred: random.chance(50), isThrough: random.chance(50), clears: random.chance(30))
        case 15: return .refresh
        case 16: return .rollback
        case 17: return .batchDelete
        case 18, 19: return .dropChanges
        case 20: return .insertAndDelete
        case 21, 22, 23: return .undo(policy: random.below(undoPolicies.count), isRedo: random.chance(30))
        case 24: return .undoAuthor(policy: random.below(undoPolicies.count))
        case 25: return .newChild
        case 26: return .batchUpdate
        case 27, 28: return .importTracks(keeps: random.chance(50))
        default: return .saveOrder
        }
    }
}
