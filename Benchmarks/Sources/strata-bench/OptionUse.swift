import ArgumentParser

/// The options that not every command reads. An option that is given but not read is refused, so that it is not ignored
/// silently.
enum OptionUse: String, CaseIterable {
    case stack, store, routing, durability, objects
    case saveEvery = "save-every"
    case input, seed
    case repeats = "repeat"
}

extension BenchmarkOptions {
    private func isGiven(_ option: OptionUse) -> Bool {
        switch option {
        case .stack: stack != nil
        case .store: store != nil
        case .routing: routing != nil
        case .durability: durability != nil
        case .objects: objects != nil
        case .saveEvery: saveEvery != nil
        case .input: input != nil
        case .seed: seed != nil
        case .repeats: repeats != nil
        }
    }

    /// Throws unless all given options are among `read`.
    func refuse(allBut read: Set<OptionUse>, in command: String) throws {
        for option in OptionUse.allCases where isGiven(option) && !read.contains(option) {
            throw ValidationError("--\(option.rawValue): \(command) does not read this option; leave it out")
        }
    }

    /// Throws if this option and an input are both given, because data from a file is not generated.
    func refuse(_ option: OptionUse, withInput why: String) throws {
        if input != nil, isGiven(option) { throw ValidationError("--\(option.rawValue): \(why); leave out this or --input") }
    }

    /// Throws if options of the generator and an input are both given: the size of the data is fixed, and it has no seed.
    func refuseGeneratorWithInput() throws {
        try refuse(.objects, withInput: "generated data only has a size to choose")
        try refuse(.seed, withInput: "generated data only has a seed")
    }
}
