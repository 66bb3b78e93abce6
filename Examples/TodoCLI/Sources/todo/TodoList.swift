import Foundation
import Strata

/// A mistake in what a person typed, in one line.
struct BadInput: Error, CustomStringConvertible {
    let description: String
}

/// Output that could not be written.
struct FailedOutput: Error, CustomStringConvertible {
    let description = "cannot write the output: its file is closed, or the disk is full. Write it to a place with free space"
}

/// The commands, which work with the objects of one context.
@MainActor struct TodoList {
    private let context: ManagedObjectContext
    private let history = UndoHistory(levels: 100)

    init(_ context: ManagedObjectContext) {
        self.context = context
        context.undoHistory = history
    }

    /// Runs one command and saves its changes. If it fails, nothing is changed, unless only the output of saved changes fails.
    func run(_ command: String, _ words: ArraySlice<String>) async throws {
        context.refreshAllObjects()  // Shows what other processes have saved.
        do {
            var result: String?
            switch command {
            case "add": try await add(Words(words))
            case "edit": result = try edit(todo(words.first), Words(words.dropFirst()))
            case "done": try todo(words.first).isDone = true
            case "remove": context.delete(try todo(words.first))
            case "list": try show(context.fetch(request(Words(words))))
            case "search": try show(context.fetch(search(words.joined(separator: " "))))
            case "tags": try showTags()
            case "watch": try await watch(updates: words.first.flatMap { Int($0) } ?? .max)
            case "undo": try undo()
            default:
                throw BadInput(
                    description:
                        "unknown command \(command). Commands are add, edit, done, remove, list, search, tags, watch, undo")
            }
            try await context.save()
            // Output that fails would undo an edit that is not saved yet.
            if let result { try show(result) }
        } catch {
            if context.hasChanges { context.rollback() }
            throw error
        }
    }

    private func add(_ words: Words) async throws {
        guard !words.title.isEmpty else { throw BadInput(description: "a todo needs a title: add Buy milk +food due:2026-12-01") }
        while true {
            let number = try (context.maximum(\.number, of: FetchRequest<Todo>()) ?? 0) + 1
            let todo = try Todo(number: number, title: words.title, due: words.due ?? nil, tags: tags(words.added))
            context.insert(todo)
            do {
                try await context.save()
                return try show("added \(todo.line)")
            } catch SaveError.uniqueConstraint {
                // Another process took the number, or added the tag.
                context.rollback()
                context.refreshAllObjects()
            }
        }
    }

    /// Returns the line of the changed todo.
    private func edit(_ todo: Todo, _ words: Words) throws -> String {
        if !words.title.isEmpty { todo.title = words.title }
        if let due = words.due { todo.due = due }
        todo.tags =
            try todo.tags.filter { !words.removed.contains($0.name) && !words.added.contains($0.name) } + tags(words.added)
        return todo.line
    }

    /// Undoes the last command of this session. The save that follows stores it.
    private func undo() throws {
        guard history.canUndo else { throw BadInput(description: "nothing to undo: only commands of this session can be undone") }
        try history.undo()
    }

    private func todo(_ word: String?) throws -> Todo {
        guard let number = word.flatMap({ Int($0) }) else { throw BadInput(description: "a number of a todo is missing: done 3") }
        if let todo = try context.find(unique: \Todo.number, number) { return todo }
        throw BadInput(description: "there is no todo \(number). `list all` shows the numbers")
    }

    private func tags(_ names: [String]) throws -> [Tag] {
        try names.map { name in try context.upsert(unique: \Tag.name, name) { _ in } }
    }

    /// Todos that are not done, or all of them, also by tag. Todos without a due date are first.
    private func request(_ words: Words) throws -> FetchRequest<Todo> {
        guard ["", "all"].contains(words.title) else {
            throw BadInput(description: "list takes `all` and one +tag, not \(words.title)")
        }
        let (isAll, tag) = (words.title == "all", words.added.first ?? "")
        return FetchRequest(
            where: #Predicate { todo in
                (isAll || !todo.isDone) && (tag.isEmpty || todo.tags.contains { $0.name == tag })
            }, sortBy: [.init(\.due), .init(\.number)])
    }

    private func search(_ text: String) throws -> FetchRequest<Todo> {
        FetchRequest(where: #Predicate { $0.title.localizedStandardContains(text) }, sortBy: [.init(\.number)])
    }

    private func showTags() throws {
        for tag in try context.fetch(FetchRequest<Tag>(sortBy: [.init(\.name)])) {
            let count = tag.todos.count { !$0.isDone }
            if count > 0 { try show("+\(tag.name) \(count)") }
        }
    }

    /// Shows the open todos, now and after each change, by any process.
    private func watch(updates limit: Int) async throws {
        let todos = try Results(request(Words([])), context: context)
        try show(todos)
        for await _ in todos.updates.prefix(limit) {
            try show("--")
            try show(todos)
        }
    }

    private func show(_ todos: some Sequence<Todo>) throws { for todo in todos { try show(todo.line) } }

    private func show(_ line: String) throws {
        do { try FileHandle.standardOutput.write(contentsOf: Data("\(line)\n".utf8)) } catch { throw FailedOutput() }
    }
}

/// The words after a command: `+tag` and `-tag`, `due:DATE` or `due:`, and the rest, which is a title.
struct Words {
    private(set) var title = ""
    private(set) var added: [String] = []
    private(set) var removed: [String] = []
    /// The due date; nil if there was no such word, and nil inside if it is to be removed.
    private(set) var due: Date??

    init(_ words: ArraySlice<String>) throws {
        for word in words {
            if word == "due:" {
                due = .some(nil)
            } else if word.hasPrefix("due:") {
                due = try? Todo.day.parse(String(word.dropFirst(4)))
                if due == nil { throw BadInput(description: "\(word.dropFirst(4)) is no date. Write it as due:2026-12-01") }
            } else if word.count > 1, word.hasPrefix("+") {
                added.append(String(word.dropFirst()))
            } else if word.count > 1, word.hasPrefix("-") {
                removed.append(String(word.dropFirst()))
            } else {
                title += title.isEmpty ? word : " " + word
            }
        }
    }
}
