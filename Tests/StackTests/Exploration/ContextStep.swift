import TestSupport

/// One step of a random sequence. Positions are taken modulo the number of objects or contexts, so that every part of a
/// sequence is a valid sequence.
struct ContextStep: Sendable, CustomStringConvertible {
    enum Kind: String, CaseIterable, Sendable {
        case newRoot, newChild, insert, update, delete, save, saveDeferred, saveThrough, rollback, refresh, refreshObject
        case dropChanges, reset, batchUpdate, batchDelete, flush, join, move, rearrange, undo, redo, group
    }

    var kind: Kind
    var context: Int
    var object: Int
    var column: Int
    var value: Int

    var description: String {
        switch kind {
        case .newRoot: "newRoot(\(PolicyKind.allCases[value % 5]), store object \(object % 2))"
        case .newChild: "newChild(of: \(context))"
        case .insert: "insert(\(context), \(value))"
        case .update: "update(\(context), object \(object), column \(column), \(value))"
        case .delete, .refreshObject: "\(kind)(\(context), object \(object))"
        case .dropChanges: "\(kind)(\(context), \(dropsList ? "list" : "object") \(object))"
        case .join, .move, .rearrange, .group: "\(kind)(\(context), object \(object), column \(column), \(value))"
        case .undo, .redo: "\(kind)(\(context), onConflict \(UndoModel.Policy.allCases[value % 3]))"
        case .batchUpdate, .batchDelete: "\(kind)(where first is \(value % 4), column \(column))"
        case .flush: "flush"
        default: "\(kind)(\(context))"
        }
    }

    /// Whether the step drops the changes of a list, and with them those by which things have joined, left or moved.
    var dropsList: Bool { kind == .dropChanges && value % 2 == 0 }

    /// Returns a sequence in which most steps change something and every kind occurs.
    static func sequence(_ count: Int, _ random: inout SeededGenerator) -> [ContextStep] {
        let weights: [Kind: Int] = [
            .insert: 7, .update: 10, .delete: 3, .save: 6, .saveDeferred: 5, .saveThrough: 4, .refresh: 5, .join: 4, .move: 8,
            .rearrange: 2, .dropChanges: 4, .undo: 10, .redo: 6, .reset: 1, .rollback: 1,
        ]
        let kinds = Kind.allCases.flatMap { Array(repeating: $0, count: weights[$0] ?? 2) }
        return (0..<count).map { _ in
            ContextStep(
                kind: kinds.randomElement(using: &random) ?? .update, context: Int.random(in: 0..<6, using: &random),
                object: Int.random(in: 0..<6, using: &random), column: Int.random(in: 0..<3, using: &random),
                value: Int.random(in: 0..<40, using: &random))
        }
    }
}
