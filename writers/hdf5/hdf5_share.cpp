#include "writers/hdf5/hdf5_share.h"

#include <sys/stat.h>

#include <optional>
#include <utility>

#include "writers/hdf5/event_sums.h"
#include "writers/hdf5/h5.h"
#include "writers/hdf5/series.h"
#include "writers/hdf5/tables.h"

namespace aon::writers {
namespace {

using hdf5::guard;

class Hdf5Share : public Writer {
 public:
  Hdf5Share(std::filesystem::path path, std::string link_name, DeviceAnalysis* devices)
      : path_(std::move(path)), link_name_(std::move(link_name)) {
    hdf5::use_library();
    if (devices == nullptr) return;
    devices->add_nccl_listener([this](const devices::TimedOperation& one) {
      if (sums_) sums_->add_nccl_time(one);
      return Status();
    });
  }
  ~Hdf5Share() override {
    const hdf5::Quiet quiet;  // what is left open after an error may fail to close
    series_.reset();
    file_ = hdf5::Handle();
  }

  Status begin(const Model& model) override {
    model_ = &model;
    sums_.emplace(model, hdf5::LocationSink());
    return {};
  }

  Status begin_location(const Location& location) override {
    location_ = &location;
    sums_->begin(location);
    if (series_) series_->begin(location);
    return {};
  }

  Status events(std::span<const Event> events) override {
    return guard(path_, [&] {
      for (const Event& event : events) {
        if (event.kind == EventKind::kSample) {
          add_sample(event);
        } else {
          sums_->add(event);
        }
      }
    });
  }

  Status end_location() override {
    return guard(path_, [&] {
      sums_->end();
      if (series_) series_->end();
    });
  }

  Status save(StateOut* out) override {
    return guard(path_, [&] {
      sums_->save(out);
      hdf5::save_series(out, link_name_, series_ ? &*series_ : nullptr);
      if (!series_) return;
      hdf5::checked(H5Fflush(file_.get(), H5F_SCOPE_GLOBAL), "cannot write the file");
    });
  }

  Status finish(const Outcome&) override {
    return Error{Code::kInvalid, "a share has no profile.h5 of its own"};
  }

 private:
  void add_sample(const Event& sample) {
    if (sample.region >= model_->metrics.size()) return;
    if (!series_) begin_file();
    series_->add(sample);
  }

  void begin_file() {
    mkdir(path_.parent_path().c_str(), 0700);  // if it fails, so does the file, and says why
    file_ = hdf5::create_profile(path_);
    series_.emplace(file_.get(), *model_);
    series_->begin(*location_);
  }

  std::filesystem::path path_;
  std::string link_name_;
  const Model* model_ = nullptr;
  const Location* location_ = nullptr;
  std::optional<hdf5::EventSums> sums_;
  hdf5::Handle file_;
  std::optional<hdf5::SeriesWriter> series_;
};

}  // namespace

std::unique_ptr<Writer> make_hdf5_share(const std::filesystem::path& series_path,
                                        std::string link_name, DeviceAnalysis* devices) {
  return std::make_unique<Hdf5Share>(series_path, std::move(link_name), devices);
}

}  // namespace aon::writers
