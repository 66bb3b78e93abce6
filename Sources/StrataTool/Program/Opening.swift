import ArgumentParser

/// How the verbs of a run open stores.
struct Opening: Sendable {
    /// The part of an LMDB file that is checked before LMDB maps it.
    enum Check: String, CaseIterable, ExpressibleByArgument { case roots, everything }

    var check = Check.everything
    /// The store that the shell keeps open for the verbs of its lines.
    var kept: OpenedStore?

    /// Returns the store that the shell keeps open if it has this path. Compares bytes, because two files may have names that look alike.
    func kept(_ path: String) -> OpenedStore? { kept.flatMap { $0.path.utf8.elementsEqual(path.utf8) ? $0 : nil } }

    /// The settings of the running verb.
    @TaskLocal static var current = Opening()
}

/// A verb, whose options say how it opens a store.
protocol StoreVerb: AsyncParsableCommand {
    var output: OutputOptions { get }
}
