import ArgumentParser

/// How the verbs of a run open stores.
struct Opening: Sendable {
    /// The part of an LMDB file that is checked before LMDB maps it.
    enum Check: String, CaseIterable, ExpressibleByArgument { case roots, everything }

    var check = Check.everything
    /// The store that the shell keeps open for the verbs of its lines.
    var kept: OpenedStore?

    /// The settings of the running verb.
    @TaskLocal static var current = Opening()
}

/// A verb, whose options say how it opens a store.
protocol StoreVerb: AsyncParsableCommand {
    var output: OutputOptions { get }
}
