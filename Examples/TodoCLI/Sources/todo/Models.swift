import Foundation
import Strata

/// A thing to do. Its number is what a person types.
@Model final class Todo {
    @Attribute(.unique) var number: Int
    @Attribute(.length(1...200)) var title: String
    @Attribute(.indexed) var isDone = false
    @Attribute(.indexed) var due: Date?
    var tags: [Tag]
}

/// A word that todos share.
@Model final class Tag {
    @Attribute(.unique, .length(1...40)) var name: String
    var todos: [Todo]
}

extension Todo {
    /// The line of a list: `3 [ ] 2026-12-01 Buy milk +food`.
    var line: String {
        let words = [due?.formatted(Self.day), title] + tags.map { "+\($0.name)" }.sorted()
        return "\(number) [\(isDone ? "x" : " ")] " + words.compactMap(\.self).joined(separator: " ")
    }

    static let day = Date.ISO8601FormatStyle().year().month().day()
}
